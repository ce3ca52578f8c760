-- The ids of an execution's frames, a page at a time.
SELECT frame_id AS key, last_seq FROM noetl.frame
WHERE execution_id = $1 AND last_seq <= $2 AND frame_id > $3
ORDER BY frame_id
LIMIT $4
