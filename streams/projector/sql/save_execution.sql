-- Executions, as one batch; a row that is newer in the table stays.
INSERT INTO noetl.execution (
  execution_id, tenant_id, organization_id, created_at, updated_at, catalog_id, parent_execution_id, path,
  version, status, last_event_type, last_node_name, last_event_id, start_time, end_time, error, state, result,
  result_ref, last_seq, projection_version, checksum, state_checksum
)
SELECT
  execution_id, tenant_id, organization_id, created_at, updated_at, catalog_id, parent_execution_id, path,
  version, status, last_event_type, last_node_name, last_event_id, start_time, end_time, error, state, result,
  result_ref, last_seq, projection_version, checksum, state_checksum
FROM jsonb_populate_recordset(NULL::noetl.execution, $1::jsonb)
ON CONFLICT (execution_id) DO UPDATE SET (
  tenant_id, organization_id, created_at, updated_at, catalog_id, parent_execution_id, path, version, status,
  last_event_type, last_node_name, last_event_id, start_time, end_time, error, state, result, result_ref,
  last_seq, projection_version, checksum, state_checksum
) = ROW (
  excluded.tenant_id, excluded.organization_id, excluded.created_at, excluded.updated_at, excluded.catalog_id,
  excluded.parent_execution_id, excluded.path, excluded.version, excluded.status, excluded.last_event_type,
  excluded.last_node_name, excluded.last_event_id, excluded.start_time, excluded.end_time, excluded.error,
  excluded.state, excluded.result, excluded.result_ref, excluded.last_seq, excluded.projection_version,
  excluded.checksum, excluded.state_checksum
)
WHERE excluded.last_seq > execution.last_seq
