-- How far executions were folded in one version of a projection; $5: after this execution.
SELECT execution_id, projection, version, tenant_id, organization_id, declaration, declaration_digest, problems,
  last_seq, last_position
FROM noetl.business_progress
WHERE tenant_id = $1 AND organization_id = $2 AND projection = $3 AND version = $4 AND execution_id > $5
ORDER BY execution_id LIMIT $6
