-- The rows of an execution's stages that have not ended.
SELECT * FROM noetl.stage WHERE execution_id = $1 AND ended_at IS NULL
