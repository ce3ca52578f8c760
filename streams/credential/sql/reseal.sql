-- The same secret under another key, unless it was set anew meanwhile.
UPDATE noetl.credential SET key_id = $4, nonce = $5, ciphertext = $6
WHERE credential_id = $1 AND revision = $2 AND key_id = $3
