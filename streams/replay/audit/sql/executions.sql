-- The executions of a tenant and organization, the newest first; all of them, or the finished ones.
SELECT root_id AS execution_id FROM noetl.root_head
WHERE root_type = 'execution' AND tenant_id = $1 AND organization_id = $2
  AND (terminal OR NOT $3::boolean) AND root_id < coalesce($4::bigint, 9223372036854775807)
ORDER BY root_id DESC
LIMIT $5
