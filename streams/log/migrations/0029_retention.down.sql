DO $$
BEGIN
  IF EXISTS (SELECT FROM noetl.archive) THEN
    RAISE EXCEPTION 'executions are archived, and only noetl.archive knows where';
  END IF;
END $$;
DROP SCHEMA noetl_detached;
DROP FUNCTION noetl.refuse_archived();
DROP TABLE noetl.archived_root, noetl.archive, noetl.retention_policy;
