-- The versions of one path, the newest first.
SELECT catalog_id, version, path, kind, content, content_ref, content_sha256, retired_at, created_at
FROM noetl.catalog
WHERE tenant_id = $1 AND organization_id = $2 AND path = $3 AND ($4::integer IS NULL OR version = $4)
ORDER BY version DESC
