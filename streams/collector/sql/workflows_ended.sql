-- When the outermost execution around each of these ($1) ended; without those that have not.
-- $2: the types of events that end a root.
WITH RECURSIVE around (execution_id, id, parent) AS (
  SELECT root_id, root_id, parent_execution_id FROM noetl.event WHERE root_id = ANY($1) AND seq = 1
  UNION ALL
  SELECT a.execution_id, e.root_id, e.parent_execution_id
  FROM around a JOIN noetl.event e ON e.root_id = a.parent AND e.seq = 1
)
SELECT a.execution_id, ending.at AT TIME ZONE 'UTC' AS ended_at
FROM around a JOIN noetl.root_head h ON h.root_id = a.id
CROSS JOIN LATERAL (
  SELECT max(x.ingest_time) AS at FROM noetl.event x
  WHERE x.root_id = a.id AND x.event_type = ANY ($2::text[])
) ending
WHERE a.parent IS NULL AND h.terminal
