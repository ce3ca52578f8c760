-- Everything that is sealed; only the owner of the database may ask.
SELECT credential_id, tenant_id, organization_id, name, revision, key_id, nonce, ciphertext
FROM noetl.credential ORDER BY credential_id
