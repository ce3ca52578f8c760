-- The tier `db`: copies of results, to be asked with SQL; the payload store has what is true.
CREATE TABLE noetl.result_data (
  ref          text PRIMARY KEY,
  execution_id bigint NOT NULL,
  step_name    text NOT NULL,
  task_label   text NOT NULL,
  payload_uri  text NOT NULL,
  data         json NOT NULL,
  expires_at   timestamptz,
  created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX result_data_by_payload ON noetl.result_data (payload_uri);
CREATE INDEX result_data_by_execution ON noetl.result_data (execution_id);
GRANT SELECT, INSERT, UPDATE, DELETE ON noetl.result_data TO noetl_append;
GRANT SELECT ON noetl.result_data TO noetl_read;
GRANT SELECT, DELETE ON noetl.result_data TO noetl_project, noetl_collect;
