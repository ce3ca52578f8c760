-- Business projections: the state of each key over the rows of one execution. Readers merge executions.
CREATE TABLE noetl.business_state (
  execution_id    bigint NOT NULL,
  projection      text NOT NULL,
  version         integer NOT NULL,
  key_digest      text NOT NULL,
  tenant_id       text NOT NULL,
  organization_id text NOT NULL,
  key_values      jsonb NOT NULL,
  state           text NOT NULL,
  row_count       bigint NOT NULL,
  first_seq       bigint NOT NULL,
  last_seq        bigint NOT NULL,
  first_position  bigint NOT NULL,
  last_position   bigint NOT NULL,
  checksum        text NOT NULL,
  PRIMARY KEY (execution_id, projection, version, key_digest)
);
CREATE INDEX business_state_by_key
  ON noetl.business_state (tenant_id, organization_id, projection, version, key_digest);
COMMENT ON COLUMN noetl.business_state.state IS 'Canonical JSON, which the checksum depends on.';
COMMENT ON COLUMN noetl.business_state.first_position IS 'The range of positions in the log whose rows are in the state.';

-- How far each projection of an execution was folded, and which rows it could not count.
CREATE TABLE noetl.business_progress (
  execution_id       bigint NOT NULL,
  projection         text NOT NULL,
  version            integer NOT NULL,
  tenant_id          text NOT NULL,
  organization_id    text NOT NULL,
  declaration        jsonb NOT NULL,
  declaration_digest text NOT NULL,
  problems           jsonb NOT NULL,
  last_seq           bigint NOT NULL,
  last_position      bigint NOT NULL,
  checksum           text NOT NULL,
  PRIMARY KEY (execution_id, projection, version)
);
CREATE INDEX business_progress_by_name
  ON noetl.business_progress (tenant_id, organization_id, projection, version, declaration_digest);

GRANT SELECT ON noetl.business_state, noetl.business_progress TO noetl_read;
GRANT SELECT, INSERT, UPDATE, DELETE ON noetl.business_state, noetl.business_progress TO noetl_project;
