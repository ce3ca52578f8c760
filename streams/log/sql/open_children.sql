-- The executions that another one started and that have not ended, except detached ones, which
-- outlive it. A child's id keeps the
-- millisecond of its parent's, so this looks at the few roots of that millisecond.
SELECT h.root_id
FROM noetl.root_head h
JOIN noetl.event e ON e.root_id = h.root_id AND e.seq = 1
WHERE h.root_type = 'execution' AND NOT h.terminal
  AND h.root_id BETWEEN $1::bigint AND $2::bigint
  AND e.root_id BETWEEN $1::bigint AND $2::bigint
  AND e.parent_execution_id = $3::bigint
  AND (e.meta ->> 'detached') IS DISTINCT FROM 'true'
ORDER BY h.root_id
