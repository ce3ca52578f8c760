-- Up to $7 records of a type that have all labels of $4, after the place ($5, $6).
SELECT * FROM projection
WHERE tenant_id = $1 AND organization_id = $2 AND projection_type = $3
  AND list_has_all(labels, $4::VARCHAR[])
  AND ($5::VARCHAR IS NULL OR place > $5 OR (place = $5 AND projection_id > $6))
ORDER BY place, projection_id
LIMIT $7
