-- The credential of a name, if there is one.
SELECT credential_id, revision FROM noetl.credential WHERE tenant_id = $1 AND organization_id = $2 AND name = $3
