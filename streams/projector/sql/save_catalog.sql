-- Versions of registered resources, as one batch; a row that is newer in the table stays.
INSERT INTO noetl.catalog (
  catalog_id, version, tenant_id, organization_id, path, kind, content, content_ref, content_sha256, created_at,
  retired_at, last_seq
)
SELECT
  catalog_id, version, tenant_id, organization_id, path, kind, content, content_ref, content_sha256, created_at,
  retired_at, last_seq
FROM jsonb_populate_recordset(NULL::noetl.catalog, $1::jsonb)
ON CONFLICT (catalog_id, version) DO UPDATE SET (
  tenant_id, organization_id, path, kind, content, content_ref, content_sha256, created_at, retired_at, last_seq
) = ROW (
  excluded.tenant_id, excluded.organization_id, excluded.path, excluded.kind, excluded.content,
  excluded.content_ref, excluded.content_sha256, excluded.created_at, excluded.retired_at, excluded.last_seq
)
WHERE excluded.last_seq > catalog.last_seq
