-- Versions of a projection, as they shall be.
INSERT INTO noetl.projection_version (
  tenant_id, organization_id, projection, version, status, declaration, declaration_digest, changed_at,
  cutover_position
)
SELECT
  tenant_id, organization_id, projection, version, status, declaration, declaration_digest, changed_at,
  cutover_position
FROM jsonb_populate_recordset(NULL::noetl.projection_version, $1::jsonb)
ON CONFLICT (tenant_id, organization_id, projection, version) DO UPDATE SET (
  status, declaration, declaration_digest, changed_at, cutover_position
) = ROW (
  excluded.status, excluded.declaration, excluded.declaration_digest, excluded.changed_at,
  excluded.cutover_position
)
