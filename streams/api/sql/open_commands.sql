-- The commands of an execution that have not ended.
SELECT command_id, step_name, tool, pool, status, owner_worker, lease_until, attempts, created_at
FROM noetl.command WHERE execution_id = $1 AND completed_at IS NULL ORDER BY command_id
