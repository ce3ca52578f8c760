-- Deletes a key.
DELETE FROM noetl.kv WHERE (tenant_id, organization_id, bucket, key) = ($1, $2, $3, $4)
RETURNING key
