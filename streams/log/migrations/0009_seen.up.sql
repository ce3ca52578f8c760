-- What people ask of the projections and the first tables could not answer.

ALTER TABLE noetl.execution
  ADD COLUMN path text,
  ADD COLUMN version integer,
  ADD COLUMN result jsonb,
  ADD COLUMN result_ref jsonb;
CREATE INDEX execution_by_path ON noetl.execution (tenant_id, organization_id, path, execution_id DESC);

ALTER TABLE noetl.stage
  ADD COLUMN total_rows bigint,
  ADD COLUMN frames bigint NOT NULL DEFAULT 0,
  ADD COLUMN error text;
COMMENT ON COLUMN noetl.stage.frames IS 'Frames dispatched so far; a frame that is tried again counts once.';

ALTER TABLE noetl.frame
  ADD COLUMN step_name text,
  ADD COLUMN ordinal bigint NOT NULL DEFAULT 0,
  ADD COLUMN shard_id text,
  ADD COLUMN rows_failed bigint NOT NULL DEFAULT 0;

ALTER TABLE noetl.command ADD COLUMN events_emitted integer NOT NULL DEFAULT 0;
-- A worker that asks over HTTP is given the oldest waiting command of its pool.
CREATE INDEX command_waiting ON noetl.command (tenant_id, organization_id, pool, command_id) WHERE status = 'PENDING';

ALTER TABLE noetl.catalog ADD COLUMN last_seq bigint NOT NULL DEFAULT 0;
