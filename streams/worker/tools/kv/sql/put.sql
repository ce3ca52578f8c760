-- Writes a value and returns its revision; the same call writes once.
INSERT INTO noetl.kv AS k
  (tenant_id, organization_id, bucket, key, value, written_by, expires_at)
VALUES ($1, $2, $3, $4, $5::text::jsonb, $6, now() + make_interval(secs => $7::float8))
ON CONFLICT (tenant_id, organization_id, bucket, key) DO UPDATE SET
  value = CASE WHEN k.written_by = $6 THEN k.value ELSE EXCLUDED.value END,
  revision = k.revision + CASE WHEN k.written_by = $6 THEN 0 ELSE 1 END,
  expires_at = CASE WHEN k.written_by = $6 THEN k.expires_at ELSE EXCLUDED.expires_at END,
  updated_at = CASE WHEN k.written_by = $6 THEN k.updated_at ELSE now() END,
  written_by = $6
RETURNING revision
