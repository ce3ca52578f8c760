-- One frame.
SELECT frame_id, stage_id, execution_id, tenant_id, organization_id, step_name, status FROM noetl.frame WHERE frame_id = $1
