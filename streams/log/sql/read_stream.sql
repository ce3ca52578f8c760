-- One entity's events after a version, in order.
SELECT seq, position, stream_version, ingest_time, chain, envelope
FROM noetl.event
WHERE root_id = $1 AND root_type = $2 AND stream_id = $3 AND stream_version > $4
ORDER BY stream_version
LIMIT $5
