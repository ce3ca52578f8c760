-- The records of a type that executions have.
SELECT projection_id, projection_type, tenant_id, organization_id, execution_id, version, place, labels, state,
  first_position, last_position, projection_version, checksum
FROM noetl_projections.projection
WHERE execution_id = ANY ($1::bigint[]) AND projection_type = $2
