-- A live claim, and the credential of this name in its scope.
SELECT * FROM noetl.credential_for_claim($1, $2, $3, $4, $5)
