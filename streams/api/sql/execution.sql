-- One execution.
SELECT execution_id, tenant_id, organization_id, catalog_id, parent_execution_id, path, version, status,
  last_event_type, last_node_name, last_event_id, start_time, end_time, error, state, result, result_ref,
  last_seq, updated_at
FROM noetl.execution WHERE execution_id = $1
