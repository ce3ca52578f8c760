-- The rows of an execution's frames that have not ended.
SELECT * FROM noetl.frame WHERE execution_id = $1 AND completed_at IS NULL
