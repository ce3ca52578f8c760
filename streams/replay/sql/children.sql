-- The executions that another one started, in the log or archived. A child's id keeps the millisecond of its
-- parent's, so this looks at the few roots of that millisecond.
SELECT e.root_id
FROM noetl.event e
WHERE e.root_type = 'execution' AND e.seq = 1
  AND e.root_id BETWEEN $1::bigint AND $2::bigint
  AND e.parent_execution_id = $3::bigint
UNION
SELECT a.root_id
FROM noetl.archived_root a
WHERE a.root_id BETWEEN $1::bigint AND $2::bigint AND a.parent_execution_id = $3::bigint
ORDER BY root_id
