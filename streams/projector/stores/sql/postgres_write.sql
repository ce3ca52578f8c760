-- Write a record; an equal or newer one stays, and one of another scope.
INSERT INTO noetl_projections.projection AS known (
  projection_id, projection_type, tenant_id, organization_id, execution_id, version, place, labels, state,
  first_position, last_position, projection_version, checksum
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (projection_id) DO UPDATE SET (
  projection_type, execution_id, version, place, labels, state, first_position, last_position,
  projection_version, checksum
) = ROW (
  excluded.projection_type, excluded.execution_id, excluded.version, excluded.place, excluded.labels,
  excluded.state, excluded.first_position, excluded.last_position, excluded.projection_version,
  excluded.checksum
)
WHERE excluded.version > known.version
  AND (excluded.tenant_id, excluded.organization_id) = (known.tenant_id, known.organization_id)
