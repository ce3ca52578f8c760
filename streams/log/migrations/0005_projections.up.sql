-- Derived state: every row here can be dropped and folded again from the log and the payloads.
-- No foreign keys: projections may lag, be rebuilt, and be partitioned on their own.

CREATE TABLE noetl.execution (
  execution_id        bigint PRIMARY KEY,
  tenant_id           text NOT NULL,
  organization_id     text NOT NULL,
  catalog_id          bigint,
  parent_execution_id bigint,
  status              text NOT NULL DEFAULT 'RUNNING',
  last_event_type     text,
  last_node_name      text,
  last_event_id       bigint,
  start_time          timestamptz,
  end_time            timestamptz,
  error               text,
  state               jsonb NOT NULL DEFAULT '{}',
  last_seq            bigint NOT NULL DEFAULT 0,
  projection_version  integer NOT NULL DEFAULT 1,
  checksum            text,
  created_at          timestamptz NOT NULL DEFAULT now(),
  updated_at          timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX execution_by_scope ON noetl.execution (tenant_id, organization_id, execution_id DESC);
CREATE INDEX execution_open ON noetl.execution (status, execution_id) WHERE end_time IS NULL;

CREATE TABLE noetl.stage (
  stage_id           bigint PRIMARY KEY,
  execution_id       bigint NOT NULL,
  tenant_id          text NOT NULL,
  organization_id    text NOT NULL,
  parent_event_id    bigint,
  loop_id            bigint,
  kind               text NOT NULL CHECK (kind IN ('loop', 'fanout', 'reduce')),
  step_name          text NOT NULL,
  dsl_ref            text NOT NULL,
  status             text NOT NULL DEFAULT 'OPEN',
  frame_policy       jsonb NOT NULL,
  frames_done        bigint NOT NULL DEFAULT 0,
  rows_done          bigint NOT NULL DEFAULT 0,
  rows_failed        bigint NOT NULL DEFAULT 0,
  last_seq           bigint NOT NULL DEFAULT 0,
  projection_version integer NOT NULL DEFAULT 1,
  checksum           text,
  started_at         timestamptz NOT NULL DEFAULT now(),
  ended_at           timestamptz
);
CREATE INDEX stage_by_execution ON noetl.stage (execution_id);

CREATE TABLE noetl.frame (
  frame_id           bigint PRIMARY KEY,
  stage_id           bigint NOT NULL,
  execution_id       bigint NOT NULL,
  tenant_id          text NOT NULL,
  organization_id    text NOT NULL,
  cursor             jsonb NOT NULL,
  row_count          bigint NOT NULL DEFAULT 0,
  status             text NOT NULL DEFAULT 'PENDING',
  owner_worker       text,
  lease_until        timestamptz,
  output_ref         jsonb,
  events_emitted     integer NOT NULL DEFAULT 0,
  attempts           integer NOT NULL DEFAULT 0,
  error              text,
  last_seq           bigint NOT NULL DEFAULT 0,
  projection_version integer NOT NULL DEFAULT 1,
  checksum           text,
  created_at         timestamptz NOT NULL DEFAULT now(),
  completed_at       timestamptz
);
CREATE INDEX frame_open_idx ON noetl.frame (stage_id, status, lease_until)
  WHERE status IN ('PENDING', 'CLAIMED', 'RUNNING');
CREATE INDEX frame_by_execution ON noetl.frame (execution_id);

CREATE TABLE noetl.command (
  command_id         bigint PRIMARY KEY,
  execution_id       bigint NOT NULL,
  tenant_id          text NOT NULL,
  organization_id    text NOT NULL,
  step_name          text NOT NULL,
  tool               text NOT NULL,
  pool               text NOT NULL,
  status             text NOT NULL DEFAULT 'PENDING',
  owner_worker       text,
  lease_until        timestamptz,
  result_ref         jsonb,
  error              text,
  attempts           integer NOT NULL DEFAULT 0,
  last_seq           bigint NOT NULL DEFAULT 0,
  projection_version integer NOT NULL DEFAULT 1,
  checksum           text,
  created_at         timestamptz NOT NULL DEFAULT now(),
  completed_at       timestamptz
);
CREATE INDEX command_by_execution ON noetl.command (execution_id);
CREATE INDEX command_open ON noetl.command (status, lease_until) WHERE completed_at IS NULL;

CREATE TABLE noetl.result_ref (
  ref_id          bigint PRIMARY KEY,
  ref             text NOT NULL,
  execution_id    bigint NOT NULL,
  tenant_id       text NOT NULL,
  organization_id text NOT NULL,
  parent_ref_id   bigint,
  step_name       text,
  task_label      text,
  store_tier      text NOT NULL,
  physical_uri    text,
  scope           text NOT NULL CHECK (scope IN ('step', 'execution', 'workflow', 'permanent')),
  content_type    text,
  byte_length     bigint,
  sha256          text,
  compression     text,
  extracted       jsonb,
  preview         jsonb,
  expires_at      timestamptz,
  expired_at      timestamptz,
  last_seq        bigint NOT NULL DEFAULT 0,
  created_at      timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT result_ref_store_tier_check CHECK (store_tier IN (
    'memory', 'kv', 'disk', 'object', 's3', 'gcs', 'db', 'duckdb', 'eventlog', 'minio', 'pvc'))
);
CREATE UNIQUE INDEX result_ref_by_ref ON noetl.result_ref (ref);
CREATE INDEX result_ref_by_execution ON noetl.result_ref (execution_id);
CREATE INDEX result_ref_expiry ON noetl.result_ref (expires_at) WHERE expired_at IS NULL;
COMMENT ON COLUMN noetl.result_ref.store_tier IS
  'Where the bytes are; object is read as disk, minio is s3 with an endpoint of its own, eventlog is inline in an event.';

-- How far each projection has read; offsets are hints, stored with the topic they belong to.
CREATE TABLE noetl.projection_checkpoint (
  projection    text NOT NULL,
  shard_id      text NOT NULL,
  topic         text NOT NULL,
  topic_id      text NOT NULL,
  partition     integer NOT NULL,
  next_offset   bigint NOT NULL,
  last_position bigint NOT NULL,
  checksum      text,
  updated_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (projection, shard_id, topic, partition)
);
CREATE TABLE noetl.execution_shard (
  execution_id bigint PRIMARY KEY,
  shard_id     text NOT NULL,
  partition    integer NOT NULL,
  assigned_at  timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE noetl.checkpoint (
  execution_id bigint NOT NULL,
  barrier      bigint NOT NULL,
  seq          bigint NOT NULL,
  state_ref    jsonb NOT NULL,
  checksum     text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (execution_id, barrier)
);
-- An accelerator of replay, never an authority: it says exactly what it was made from.
CREATE TABLE noetl.snapshot (
  aggregate_type     text NOT NULL,
  aggregate_id       text NOT NULL,
  projection         text NOT NULL,
  seq                bigint NOT NULL,
  tenant_id          text NOT NULL,
  organization_id    text NOT NULL,
  projection_version integer NOT NULL,
  upcaster_versions  jsonb NOT NULL,
  payload_root       text NOT NULL,
  encryption_context jsonb,
  state              bytea NOT NULL,
  checksum           text NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (aggregate_type, aggregate_id, projection, seq)
);

CREATE TABLE noetl.catalog (
  catalog_id      bigint NOT NULL,
  version         integer NOT NULL,
  tenant_id       text NOT NULL,
  organization_id text NOT NULL,
  path            text NOT NULL,
  kind            text NOT NULL,
  content         text,
  content_ref     jsonb,
  content_sha256  text NOT NULL,
  retired_at      timestamptz,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (catalog_id, version)
);
CREATE UNIQUE INDEX catalog_by_path ON noetl.catalog (tenant_id, organization_id, path, version);

GRANT SELECT ON ALL TABLES IN SCHEMA noetl TO noetl_read;
GRANT SELECT, INSERT, UPDATE, DELETE ON
  noetl.execution, noetl.stage, noetl.frame, noetl.command, noetl.result_ref, noetl.projection_checkpoint,
  noetl.execution_shard, noetl.checkpoint, noetl.snapshot, noetl.catalog TO noetl_project;
GRANT SELECT ON noetl.result_ref, noetl.execution TO noetl_collect;
