-- The keys of a bucket whose values have not expired.
SELECT key FROM noetl.kv
WHERE (tenant_id, organization_id, bucket) = ($1, $2, $3)
  AND (expires_at IS NULL OR expires_at > now())
ORDER BY key COLLATE "C"
