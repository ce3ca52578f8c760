-- One stage, and which playbook it is of.
SELECT s.stage_id, s.execution_id, s.tenant_id, s.organization_id, s.loop_id, s.step_name, s.dsl_ref, s.status,
  s.frame_policy, e.catalog_id, e.version AS catalog_version
FROM noetl.stage s LEFT JOIN noetl.execution e USING (execution_id) WHERE s.stage_id = $1
