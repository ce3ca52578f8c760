-- The executions whose events are in a partition ($1 to below $2): how far they came, and their parents.
SELECT h.root_id, h.tenant_id, h.organization_id, h.seq, h.chain, h.terminal,
  h.ingest_time AT TIME ZONE 'UTC' AS last_at, e.parent_execution_id,
  coalesce(NOT p.terminal, false) AS is_parent_open, coalesce(x.last_seq, 0) AS projected_seq
FROM noetl.root_head h
JOIN noetl.event e ON e.root_id = h.root_id AND e.seq = 1
LEFT JOIN noetl.root_head p ON p.root_id = e.parent_execution_id
LEFT JOIN noetl.execution x ON x.execution_id = h.root_id
WHERE h.root_type = 'execution' AND h.root_id >= $1 AND h.root_id < $2
ORDER BY h.root_id
