-- A page of executions, the newest first.
SELECT execution_id, catalog_id, parent_execution_id, path, version, status, last_event_type, last_node_name,
  start_time, end_time, error, state, last_seq, updated_at
FROM noetl.execution
WHERE tenant_id = $1 AND organization_id = $2 AND ($3::text IS NULL OR status = $3)
  AND ($4::text IS NULL OR path = $4) AND execution_id < $5
ORDER BY execution_id DESC
LIMIT $6
