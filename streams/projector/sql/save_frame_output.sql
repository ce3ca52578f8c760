-- Outputs of commits and checkpoints, as one batch. Each is one event, so a row never changes.
INSERT INTO noetl.frame_output (
  frame_id, stage_id, execution_id, tenant_id, organization_id, step_name, schema_digest, row_count,
  byte_count, column_count, null_count, problem, last_seq
)
SELECT
  frame_id, stage_id, execution_id, tenant_id, organization_id, step_name, schema_digest, row_count,
  byte_count, column_count, null_count, problem, last_seq
FROM jsonb_populate_recordset(NULL::noetl.frame_output, $1::jsonb)
ON CONFLICT (frame_id, last_seq) DO NOTHING
