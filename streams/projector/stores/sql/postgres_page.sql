-- Up to $7 records of a type that have all labels of $4, after the place ($5, $6).
SELECT projection_id, projection_type, tenant_id, organization_id, execution_id, version, place, labels, state,
  first_position, last_position, projection_version, checksum
FROM noetl_projections.projection
WHERE tenant_id = $1 AND organization_id = $2 AND projection_type = $3 AND labels @> $4::text[]
  AND ($5::text IS NULL OR (place, projection_id) > ($5, $6))
ORDER BY place, projection_id
LIMIT $7
