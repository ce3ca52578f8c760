-- The rows of an execution's commands that have not ended.
SELECT * FROM noetl.command WHERE execution_id = $1 AND completed_at IS NULL
