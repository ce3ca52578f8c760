-- The credentials of a scope, without what is sealed.
SELECT credential_id, name, kind, revision, key_id, fields, created_at, updated_at
FROM noetl.credential WHERE tenant_id = $1 AND organization_id = $2 ORDER BY name
