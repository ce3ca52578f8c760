-- A root's events after one place and up to another, in order.
SELECT seq, position, stream_version, ingest_time, chain, envelope
FROM noetl.event
WHERE root_id = $1 AND root_type = $2 AND seq > $3 AND seq <= coalesce($4, 9223372036854775807)
ORDER BY seq
LIMIT $5
