-- Executions that have not ended and are suspended, each with the place of what suspended it;
-- of all, or of those in $1.
SELECT h.root_id, last.seq
FROM noetl.root_head h CROSS JOIN LATERAL (
  SELECT e.seq, e.event_type FROM noetl.event e
  WHERE e.root_id = h.root_id AND e.stream_id = 'execution/' || h.root_id
    AND e.event_type IN ('execution.suspended', 'execution.resumed')
  ORDER BY e.stream_version DESC LIMIT 1) last
WHERE h.root_type = 'execution' AND NOT h.terminal AND h.seq > 0
  AND ($1::bigint[] IS NULL OR h.root_id = ANY ($1)) AND last.event_type = 'execution.suspended'
