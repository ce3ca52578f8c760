-- All rows of one version of a projection.
WITH of_states AS (
  DELETE FROM noetl.business_state
  WHERE tenant_id = $1 AND organization_id = $2 AND projection = $3 AND version = $4
)
DELETE FROM noetl.business_progress
WHERE tenant_id = $1 AND organization_id = $2 AND projection = $3 AND version = $4
