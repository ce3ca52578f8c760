-- A root's events as stored, after one place and up to another.
SELECT seq, position, stream_version, ingest_time, checksum, chain, envelope
FROM noetl.event
WHERE root_id = $1 AND root_type = $2 AND seq > $3 AND seq <= $4
ORDER BY seq
LIMIT $5
