-- The states of up to $8 keys after $7, over all executions, in the order of the keys; $4 are versions.
-- $5 and $6 are filters: positions in the key, and the texts of their values.
WITH keys AS (
  SELECT DISTINCT key_values, key_digest
  FROM noetl.business_state
  WHERE tenant_id = $1 AND organization_id = $2 AND projection = $3 AND version = ANY ($4::integer[])
    AND ($7::jsonb IS NULL OR key_values > $7::jsonb)
    AND NOT EXISTS (
      SELECT FROM unnest($5::integer[], $6::text[]) AS wanted (place, value)
      WHERE key_values->>wanted.place IS DISTINCT FROM wanted.value
    )
  ORDER BY key_values, key_digest
  LIMIT $8
)
SELECT s.execution_id, s.projection, s.version, s.key_digest, s.tenant_id, s.organization_id, s.key_values,
  s.state, s.row_count, s.first_seq, s.last_seq, s.first_position, s.last_position
FROM keys
JOIN noetl.business_state s ON s.tenant_id = $1 AND s.organization_id = $2 AND s.projection = $3
  AND s.version = ANY ($4::integer[]) AND s.key_digest = keys.key_digest
ORDER BY keys.key_values, keys.key_digest, s.version, s.execution_id
