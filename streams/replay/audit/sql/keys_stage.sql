-- The ids of an execution's stages, a page at a time.
SELECT stage_id AS key, last_seq FROM noetl.stage
WHERE execution_id = $1 AND last_seq <= $2 AND stage_id > $3
ORDER BY stage_id
LIMIT $4
