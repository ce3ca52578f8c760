-- Executions of an organization in order of their ids, a page of them.
SELECT root_id FROM noetl.root_head
WHERE root_type = 'execution' AND tenant_id = $1 AND organization_id = $2 AND root_id > $3
ORDER BY root_id
LIMIT $4
