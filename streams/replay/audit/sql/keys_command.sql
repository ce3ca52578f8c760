-- The ids of an execution's commands, a page at a time.
SELECT command_id AS key, last_seq FROM noetl.command
WHERE execution_id = $1 AND last_seq <= $2 AND command_id > $3
ORDER BY command_id
LIMIT $4
