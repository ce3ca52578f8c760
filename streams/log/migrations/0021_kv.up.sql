-- Small values that playbooks of NoETL's spelling share through the tool `nats`. They belong to
-- the playbooks, as rows in a database of their own would: no projection, nothing rebuilds them.
CREATE TABLE noetl.kv (
  tenant_id text NOT NULL,
  organization_id text NOT NULL,
  bucket text NOT NULL,
  key text NOT NULL,
  value jsonb NOT NULL,
  revision bigint NOT NULL DEFAULT 1,
  written_by text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  PRIMARY KEY (tenant_id, organization_id, bucket, key)
);
COMMENT ON COLUMN noetl.kv.written_by IS 'The call that wrote it: a later attempt writes nothing.';
GRANT SELECT, INSERT, UPDATE, DELETE ON noetl.kv TO noetl_append;
GRANT SELECT ON noetl.kv TO noetl_read;
