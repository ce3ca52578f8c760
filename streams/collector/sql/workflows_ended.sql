-- When the outermost execution around each of these ended; without those that have not.
WITH RECURSIVE around (execution_id, id, parent) AS (
  SELECT root_id, root_id, parent_execution_id FROM noetl.event WHERE root_id = ANY($1) AND seq = 1
  UNION ALL
  SELECT a.execution_id, e.root_id, e.parent_execution_id
  FROM around a JOIN noetl.event e ON e.root_id = a.parent AND e.seq = 1
)
SELECT a.execution_id, h.ingest_time AT TIME ZONE 'UTC' AS ended_at
FROM around a JOIN noetl.root_head h ON h.root_id = a.id
WHERE a.parent IS NULL AND h.terminal
