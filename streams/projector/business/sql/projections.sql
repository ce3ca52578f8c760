-- The projections of a scope: each declaration, with the executions that have it.
SELECT projection, version, declaration_digest, min(declaration::text) AS declaration,
  count(*) AS executions, count(*) FILTER (WHERE problems <> '[]') AS problems,
  max(last_position) AS last_position
FROM noetl.business_progress
WHERE tenant_id = $1 AND organization_id = $2
GROUP BY projection, version, declaration_digest
ORDER BY projection, version, declaration_digest
