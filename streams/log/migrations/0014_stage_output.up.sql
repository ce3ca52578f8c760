-- What stages gave: one row for each frame whose output was read, summed up by stage and schema.
CREATE TABLE noetl.frame_output (
  frame_id        bigint PRIMARY KEY,
  stage_id        bigint NOT NULL,
  execution_id    bigint NOT NULL,
  tenant_id       text NOT NULL,
  organization_id text NOT NULL,
  step_name       text,
  schema_digest   text,
  row_count       bigint NOT NULL,
  byte_count      bigint NOT NULL,
  column_count    integer,
  null_count      bigint,
  problem         text,
  last_seq        bigint NOT NULL
);
CREATE INDEX frame_output_by_execution ON noetl.frame_output (execution_id, stage_id);
COMMENT ON COLUMN noetl.frame_output.problem IS 'Why the output could not be read; its counts are then those of its reference.';

CREATE VIEW noetl.stage_output AS
SELECT execution_id, stage_id, min(tenant_id) AS tenant_id, min(organization_id) AS organization_id,
       min(step_name) AS step_name, schema_digest, max(column_count) AS column_count,
       count(*) AS frames, sum(row_count)::bigint AS row_count, sum(byte_count)::bigint AS byte_count,
       sum(null_count)::bigint AS null_count, count(problem) AS problems
FROM noetl.frame_output
GROUP BY execution_id, stage_id, schema_digest;

GRANT SELECT ON noetl.frame_output, noetl.stage_output TO noetl_read;
GRANT SELECT, INSERT, UPDATE, DELETE ON noetl.frame_output TO noetl_project;
