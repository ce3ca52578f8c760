-- The versions of projections of scopes: $1 and $2 are their tenants and organizations.
SELECT v.tenant_id, v.organization_id, projection, version, status, declaration, declaration_digest, changed_at,
  cutover_position
FROM unnest($1::text[], $2::text[]) AS scope (tenant_id, organization_id)
JOIN noetl.projection_version v USING (tenant_id, organization_id)
ORDER BY projection, version
