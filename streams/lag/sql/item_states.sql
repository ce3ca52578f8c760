-- The newest event of each work item's frame or command, when its cause was appended, and
-- whether the execution is still open.
SELECT w.entity_id, e.event_type, h.terminal,
  coalesce(c.ingest_time, d.ingest_time, e.ingest_time) AS caused_at
FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS w (entity_id, root_id, stream_id)
JOIN noetl.root_head h ON h.root_id = w.root_id
CROSS JOIN LATERAL (
  SELECT event_type, ingest_time FROM noetl.event
  WHERE root_id = w.root_id AND stream_id = w.stream_id
  ORDER BY stream_version DESC LIMIT 1
) e
LEFT JOIN LATERAL (
  SELECT ingest_time, causation_id, seq FROM noetl.event
  WHERE root_id = w.root_id AND stream_id = w.stream_id
    AND event_type IN ('frame.dispatched', 'command.issued')
  ORDER BY stream_version DESC LIMIT 1
) d ON true
-- A cause is a little before its effect: what was appended long before is not looked for.
LEFT JOIN LATERAL (
  SELECT ingest_time FROM noetl.event
  WHERE root_id = w.root_id AND seq < d.seq AND seq >= d.seq - 1000 AND event_id = d.causation_id
  LIMIT 1
) c ON true
