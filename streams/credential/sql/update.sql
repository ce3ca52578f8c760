-- The next revision of a credential.
UPDATE noetl.credential
SET kind = $5, revision = $6, fields = $7, key_id = $8, nonce = $9, ciphertext = $10, updated_at = now()
WHERE credential_id = $1 AND tenant_id = $2 AND organization_id = $3 AND name = $4
RETURNING credential_id, name, kind, revision, key_id, fields, created_at, updated_at
