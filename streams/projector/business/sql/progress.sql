-- How far the business projections of executions were folded.
SELECT execution_id, projection, version, tenant_id, organization_id, declaration, declaration_digest, problems,
  last_seq, last_position
FROM noetl.business_progress
WHERE execution_id = ANY ($1::bigint[])
