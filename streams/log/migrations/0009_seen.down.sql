ALTER TABLE noetl.catalog DROP COLUMN last_seq;
DROP INDEX noetl.command_waiting;
ALTER TABLE noetl.command DROP COLUMN events_emitted;
ALTER TABLE noetl.frame DROP COLUMN step_name, DROP COLUMN ordinal, DROP COLUMN shard_id, DROP COLUMN rows_failed;
ALTER TABLE noetl.stage DROP COLUMN total_rows, DROP COLUMN frames, DROP COLUMN error;
DROP INDEX noetl.execution_by_path;
ALTER TABLE noetl.execution DROP COLUMN path, DROP COLUMN version, DROP COLUMN result, DROP COLUMN result_ref;
