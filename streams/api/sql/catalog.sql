-- The newest version of every path.
SELECT DISTINCT ON (path) catalog_id, version, path, kind, content_sha256, retired_at, created_at
FROM noetl.catalog WHERE tenant_id = $1 AND organization_id = $2
ORDER BY path, version DESC
