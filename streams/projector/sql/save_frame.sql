-- Frames, as one batch; a row that is newer in the table stays.
INSERT INTO noetl.frame (
  frame_id, stage_id, execution_id, tenant_id, organization_id, step_name, ordinal, shard_id, cursor, row_count,
  rows_failed, status, owner_worker, lease_until, output_ref, events_emitted, attempts, error, created_at,
  completed_at, last_seq, projection_version, checksum
)
SELECT
  frame_id, stage_id, execution_id, tenant_id, organization_id, step_name, ordinal, shard_id, cursor, row_count,
  rows_failed, status, owner_worker, lease_until, output_ref, events_emitted, attempts, error, created_at,
  completed_at, last_seq, projection_version, checksum
FROM jsonb_populate_recordset(NULL::noetl.frame, $1::jsonb)
ON CONFLICT (frame_id) DO UPDATE SET (
  stage_id, execution_id, tenant_id, organization_id, step_name, ordinal, shard_id, cursor, row_count,
  rows_failed, status, owner_worker, lease_until, output_ref, events_emitted, attempts, error, created_at,
  completed_at, last_seq, projection_version, checksum
) = ROW (
  excluded.stage_id, excluded.execution_id, excluded.tenant_id, excluded.organization_id, excluded.step_name,
  excluded.ordinal, excluded.shard_id, excluded.cursor, excluded.row_count, excluded.rows_failed,
  excluded.status, excluded.owner_worker, excluded.lease_until, excluded.output_ref, excluded.events_emitted,
  excluded.attempts, excluded.error, excluded.created_at, excluded.completed_at, excluded.last_seq,
  excluded.projection_version, excluded.checksum
)
WHERE excluded.last_seq > frame.last_seq
