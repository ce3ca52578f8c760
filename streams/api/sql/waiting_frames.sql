-- Frames of a stage that wait for a worker; none while the execution is suspended.
SELECT f.frame_id, f.ordinal
FROM noetl.frame f LEFT JOIN noetl.execution e USING (execution_id)
WHERE f.stage_id = $1 AND f.status = 'PENDING' AND e.status IS DISTINCT FROM 'SUSPENDED'
ORDER BY f.ordinal
LIMIT $2
