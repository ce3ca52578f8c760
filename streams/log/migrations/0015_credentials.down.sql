DROP FUNCTION IF EXISTS noetl.credential_for_claim;
-- Of the table, and with that of every column.
REVOKE SELECT ON noetl.credential FROM noetl_append;
GRANT SELECT ON noetl.credential TO noetl_append;
ALTER TABLE noetl.credential DROP COLUMN IF EXISTS fields;
