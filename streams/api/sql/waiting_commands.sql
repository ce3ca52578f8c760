-- Commands of a pool that wait for a worker (not of suspended executions), and which playbooks they are of.
SELECT c.command_id, c.execution_id, c.tenant_id, c.organization_id, e.catalog_id, e.version AS catalog_version
FROM noetl.command c LEFT JOIN noetl.execution e USING (execution_id)
WHERE c.tenant_id = $1 AND c.organization_id = $2 AND c.pool = $3 AND c.status = 'PENDING'
  AND e.status IS DISTINCT FROM 'SUSPENDED'
  AND (cardinality($4::text[]) = 0 OR c.tool = ANY ($4))
ORDER BY c.command_id
LIMIT $5
