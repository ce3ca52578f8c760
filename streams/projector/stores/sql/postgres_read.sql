-- The records with these ids.
SELECT projection_id, projection_type, tenant_id, organization_id, execution_id, version, place, labels, state,
  first_position, last_position, projection_version, checksum
FROM noetl_projections.projection
WHERE projection_id = ANY ($1::text[])
