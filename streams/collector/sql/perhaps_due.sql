-- Executions that perhaps hold a result whose end has come, as far as they were projected;
-- $1: now, $2: a grace before. Whether its step is over only the log can say, also once the
-- execution has ended: it may have done so before anybody asked.
SELECT DISTINCT r.execution_id
FROM noetl.result_ref r
JOIN noetl.execution e ON e.execution_id = r.execution_id
LEFT JOIN noetl.execution p ON p.execution_id = e.parent_execution_id
WHERE r.expired_at IS NULL AND r.scope <> 'permanent'
  AND (r.expires_at <= $1
    OR r.scope = 'step'
    OR r.scope = 'execution' AND e.end_time <= $2
    OR r.scope = 'workflow' AND e.end_time <= $2 AND (p.execution_id IS NULL OR p.end_time <= $2))
