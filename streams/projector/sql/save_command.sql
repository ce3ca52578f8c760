-- Commands, as one batch; a row that is newer in the table stays.
INSERT INTO noetl.command (
  command_id, execution_id, tenant_id, organization_id, step_name, tool, pool, status, owner_worker,
  lease_until, result_ref, error, events_emitted, attempts, created_at, completed_at, last_seq,
  projection_version, checksum
)
SELECT
  command_id, execution_id, tenant_id, organization_id, step_name, tool, pool, status, owner_worker,
  lease_until, result_ref, error, events_emitted, attempts, created_at, completed_at, last_seq,
  projection_version, checksum
FROM jsonb_populate_recordset(NULL::noetl.command, $1::jsonb)
ON CONFLICT (command_id) DO UPDATE SET (
  execution_id, tenant_id, organization_id, step_name, tool, pool, status, owner_worker, lease_until,
  result_ref, error, events_emitted, attempts, created_at, completed_at, last_seq, projection_version, checksum
) = ROW (
  excluded.execution_id, excluded.tenant_id, excluded.organization_id, excluded.step_name, excluded.tool,
  excluded.pool, excluded.status, excluded.owner_worker, excluded.lease_until, excluded.result_ref,
  excluded.error, excluded.events_emitted, excluded.attempts, excluded.created_at, excluded.completed_at,
  excluded.last_seq, excluded.projection_version, excluded.checksum
)
WHERE excluded.last_seq > command.last_seq
