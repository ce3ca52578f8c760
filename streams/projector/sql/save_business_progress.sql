-- How far business projections of executions were folded; progress never goes back.
INSERT INTO noetl.business_progress (
  execution_id, projection, version, tenant_id, organization_id, declaration, declaration_digest, problems,
  last_seq, last_position, checksum
)
SELECT
  execution_id, projection, version, tenant_id, organization_id, declaration, declaration_digest, problems,
  last_seq, last_position, checksum
FROM jsonb_populate_recordset(NULL::noetl.business_progress, $1::jsonb)
ON CONFLICT (execution_id, projection, version) DO UPDATE SET (
  declaration, declaration_digest, problems, last_seq, last_position, checksum
) = ROW (
  excluded.declaration, excluded.declaration_digest, excluded.problems, excluded.last_seq,
  excluded.last_position, excluded.checksum
)
WHERE excluded.last_seq > business_progress.last_seq
