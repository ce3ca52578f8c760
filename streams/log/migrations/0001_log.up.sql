-- The log: the only truth. One table, one head row per root, one function that appends.

CREATE SCHEMA IF NOT EXISTS noetl;

-- One role per duty. A deployment gives them logins; here they only must exist.
DO $$
DECLARE
  duty text;
BEGIN
  FOREACH duty IN ARRAY ARRAY['append', 'read', 'mirror', 'project', 'collect'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'noetl_' || duty) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', 'noetl_' || duty);
    END IF;
  END LOOP;
END $$;
GRANT USAGE ON SCHEMA noetl TO noetl_append, noetl_read, noetl_mirror, noetl_project, noetl_collect;

-- What an append locks: the newest place in a root, and whether the root has ended.
CREATE TABLE noetl.root_head (
  root_id         bigint PRIMARY KEY,
  root_type       text NOT NULL,
  tenant_id       text NOT NULL,
  organization_id text NOT NULL,
  seq             bigint NOT NULL DEFAULT 0,
  chain           bytea NOT NULL DEFAULT '\x0000000000000000000000000000000000000000000000000000000000000000',
  ingest_time     timestamp(3) NOT NULL DEFAULT '-infinity',
  terminal        boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

CREATE TABLE noetl.event (
  root_id             bigint NOT NULL,
  seq                 bigint NOT NULL,
  position            bigint GENERATED ALWAYS AS IDENTITY (CACHE 1),
  xid                 xid8 NOT NULL DEFAULT pg_current_xact_id(),
  root_type           text NOT NULL,
  event_id            bigint NOT NULL,
  execution_id        bigint GENERATED ALWAYS AS (CASE WHEN root_type = 'execution' THEN root_id END) STORED,
  parent_execution_id bigint,
  catalog_id          bigint,
  tenant_id           text NOT NULL,
  organization_id     text NOT NULL,
  stream_id           text NOT NULL,
  stream_version      bigint NOT NULL,
  aggregate_type      text NOT NULL,
  aggregate_id        text NOT NULL,
  event_type          text NOT NULL,
  schema_name         text NOT NULL,
  schema_version      integer NOT NULL,
  event_time          timestamptz(3) NOT NULL,
  ingest_time         timestamp(3) NOT NULL,
  producer            text NOT NULL,
  causation_id        bigint,
  correlation_id      text NOT NULL,
  idempotency_key     text NOT NULL,
  claim               text,
  node_name           text,
  node_type           text,
  status              text,
  error               text,
  current_index       bigint,
  current_item        json,
  meta                jsonb NOT NULL,
  context             json,
  result              json,
  payload_ref         json,
  trace               text,
  checksum            bytea NOT NULL,
  digest              bytea NOT NULL,
  chain               bytea NOT NULL,
  envelope            bytea NOT NULL,
  PRIMARY KEY (root_id, seq),
  CONSTRAINT event_idempotency UNIQUE (root_id, idempotency_key),
  CONSTRAINT event_stream UNIQUE (root_id, stream_id, stream_version),
  -- What the mirror could not carry is kept out here, whoever writes.
  CONSTRAINT event_root_type CHECK (root_type IN ('execution', 'catalog', 'schedule', 'tenant', 'trigger', 'credential')),
  CONSTRAINT event_scope CHECK (tenant_id <> '' AND organization_id <> ''),
  CONSTRAINT event_size CHECK (octet_length(envelope) <= 131072),
  CONSTRAINT event_digests CHECK (octet_length(checksum) = 32 AND octet_length(digest) = 32)
) PARTITION BY RANGE (root_id);

COMMENT ON COLUMN noetl.event.ingest_time IS 'UTC; without a zone because the mirror reads it as milliseconds. Never goes back within a root.';
COMMENT ON COLUMN noetl.event.xid IS 'Transaction that appended it; whole-log readers stop below the oldest one still running.';
COMMENT ON COLUMN noetl.event.digest IS 'What two events with one idempotency key must have in common.';

-- Whole-log readers go by (transaction, position).
CREATE INDEX event_frontier ON noetl.event (xid, position);
-- Only one event of a type may carry a claim; the second is skipped, not an error.
CREATE UNIQUE INDEX event_claim ON noetl.event (root_id, claim) WHERE claim IS NOT NULL;
-- Rows of one execution lie together, so a small index is enough for queries by execution_id.
CREATE INDEX event_execution ON noetl.event USING brin (execution_id) WITH (pages_per_range = 16);

-- The specification's own unique claims and its loop index, for whoever writes by SQL.
CREATE UNIQUE INDEX uidx_event_command_issued_command_id ON noetl.event (root_id, (meta->>'command_id'))
  WHERE event_type = 'command.issued' AND meta ? 'command_id';
CREATE UNIQUE INDEX uidx_event_loop_done_loop_id ON noetl.event (root_id, (meta->>'loop_id'))
  WHERE event_type = 'loop.done' AND meta ? 'loop_id';
CREATE UNIQUE INDEX uidx_event_loop_fanin_completed_loop_id ON noetl.event (root_id, (meta->>'loop_id'))
  WHERE event_type = 'loop.fanin.completed' AND meta ? 'loop_id';
CREATE INDEX idx_event_loop_id_type ON noetl.event (execution_id, (meta->>'loop_id'), event_type)
  WHERE meta ? 'loop_id';

-- Ids are snowflakes (milliseconds since 2024 above 22 bits), so a range of ids is a range of time.
CREATE FUNCTION noetl.lowest_id_at(p_at timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT greatest(0, (extract(epoch FROM p_at - timestamptz '2024-01-01 00:00:00+00') * 1000)::bigint) << 22
$$;

-- Makes this month's partition and those of the next months; returns how many were new.
CREATE FUNCTION noetl.ensure_partitions(p_months_ahead integer DEFAULT 3) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  first_month timestamptz := date_trunc('month', now(), 'UTC');
  month timestamptz;
  name text;
  made integer := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('noetl.ensure_partitions'));
  IF to_regclass('noetl.event_past') IS NULL THEN
    EXECUTE format('CREATE TABLE noetl.event_past PARTITION OF noetl.event FOR VALUES FROM (MINVALUE) TO (%s)',
      noetl.lowest_id_at(first_month));
    made := made + 1;
  END IF;
  FOR ahead IN 0 .. p_months_ahead LOOP
    month := first_month + make_interval(months => ahead);
    name := 'event_' || to_char(month AT TIME ZONE 'UTC', 'YYYYMM');
    IF to_regclass('noetl.' || name) IS NULL THEN
      -- An event is small and read whole: compressing it to spare a page costs more than it saves.
      EXECUTE format('CREATE TABLE noetl.%I PARTITION OF noetl.event FOR VALUES FROM (%s) TO (%s) WITH (toast_tuple_target = 8160)',
        name, noetl.lowest_id_at(month), noetl.lowest_id_at(month + interval '1 month'));
      made := made + 1;
    END IF;
  END LOOP;
  RETURN made;
END $$;
SELECT noetl.ensure_partitions();

-- chain(n) = SHA-256 of chain(n-1) and the envelope checksum; as an aggregate it runs over a window.
CREATE FUNCTION noetl.chain_step(p_state bytea, p_checksum bytea, p_head bytea) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$ BEGIN RETURN sha256(coalesce(p_state, p_head) || p_checksum); END $$;
CREATE AGGREGATE noetl.chain(p_checksum bytea, p_head bytea) (SFUNC = noetl.chain_step, STYPE = bytea);

-- The mirror publishes inserts of these columns, as one table.
CREATE PUBLICATION noetl_mirror
  FOR TABLE noetl.event (root_type, root_id, event_id, envelope, ingest_time, seq, position, stream_version, chain, event_type, tenant_id, organization_id)
  WITH (publish = 'insert', publish_via_partition_root = true);

GRANT SELECT ON noetl.event, noetl.root_head TO noetl_append, noetl_read, noetl_mirror, noetl_project, noetl_collect;
