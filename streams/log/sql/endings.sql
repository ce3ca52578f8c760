-- The event that ended each of these roots; those that are still open are missing.
SELECT h.root_id, e.seq, e.position, e.stream_version, e.ingest_time, e.chain, e.envelope
FROM noetl.root_head h
CROSS JOIN LATERAL (
  SELECT x.seq, x.position, x.stream_version, x.ingest_time, x.chain, x.envelope
  FROM noetl.event x
  WHERE x.root_id = h.root_id AND x.event_type = ANY ($2::text[])
  ORDER BY x.seq DESC LIMIT 1
) e
WHERE h.root_id = ANY ($1::bigint[]) AND h.terminal
