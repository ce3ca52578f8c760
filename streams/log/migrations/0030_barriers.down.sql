DROP VIEW noetl.checkpoint;
CREATE TABLE noetl.checkpoint (
  execution_id bigint NOT NULL,
  barrier      bigint NOT NULL,
  seq          bigint NOT NULL,
  state_ref    jsonb NOT NULL,
  checksum     text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (execution_id, barrier)
);
GRANT SELECT ON noetl.checkpoint TO noetl_read;
GRANT SELECT, INSERT, UPDATE, DELETE ON noetl.checkpoint TO noetl_project;
