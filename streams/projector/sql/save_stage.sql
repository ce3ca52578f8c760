-- Stages, as one batch; a row that is newer in the table stays.
INSERT INTO noetl.stage (
  stage_id, execution_id, tenant_id, organization_id, parent_event_id, loop_id, kind, step_name, dsl_ref,
  status, frame_policy, total_rows, frames, frames_done, rows_done, rows_failed, error, started_at, ended_at,
  last_seq, projection_version, checksum
)
SELECT
  stage_id, execution_id, tenant_id, organization_id, parent_event_id, loop_id, kind, step_name, dsl_ref,
  status, frame_policy, total_rows, frames, frames_done, rows_done, rows_failed, error, started_at, ended_at,
  last_seq, projection_version, checksum
FROM jsonb_populate_recordset(NULL::noetl.stage, $1::jsonb)
ON CONFLICT (stage_id) DO UPDATE SET (
  execution_id, tenant_id, organization_id, parent_event_id, loop_id, kind, step_name, dsl_ref, status,
  frame_policy, total_rows, frames, frames_done, rows_done, rows_failed, error, started_at, ended_at, last_seq,
  projection_version, checksum
) = ROW (
  excluded.execution_id, excluded.tenant_id, excluded.organization_id, excluded.parent_event_id,
  excluded.loop_id, excluded.kind, excluded.step_name, excluded.dsl_ref, excluded.status, excluded.frame_policy,
  excluded.total_rows, excluded.frames, excluded.frames_done, excluded.rows_done, excluded.rows_failed,
  excluded.error, excluded.started_at, excluded.ended_at, excluded.last_seq, excluded.projection_version,
  excluded.checksum
)
WHERE excluded.last_seq > stage.last_seq
