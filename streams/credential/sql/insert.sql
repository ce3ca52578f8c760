-- A name's first credential.
INSERT INTO noetl.credential
  (credential_id, tenant_id, organization_id, name, kind, revision, fields, key_id, nonce, ciphertext)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
RETURNING credential_id, name, kind, revision, key_id, fields, created_at, updated_at
