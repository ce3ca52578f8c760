-- A value that has not expired.
SELECT value, revision FROM noetl.kv
WHERE (tenant_id, organization_id, bucket, key) = ($1, $2, $3, $4)
  AND (expires_at IS NULL OR expires_at > now())
