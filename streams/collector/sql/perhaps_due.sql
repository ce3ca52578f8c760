-- Executions that perhaps hold a result whose end has come, as far as they were projected;
-- $1: now, $2: a grace before. Those that are not ended yet are judged by the log.
SELECT DISTINCT r.execution_id
FROM noetl.result_ref r
JOIN noetl.execution e ON e.execution_id = r.execution_id
LEFT JOIN noetl.execution p ON p.execution_id = e.parent_execution_id
WHERE r.expired_at IS NULL AND r.scope <> 'permanent'
  AND (r.expires_at <= $1
    OR r.scope = 'step' AND e.end_time IS NULL
    OR r.scope <> 'workflow' AND e.end_time <= $2
    OR r.scope = 'workflow' AND e.end_time <= $2 AND (p.execution_id IS NULL OR p.end_time <= $2))
