-- The last place of a root that was stored at a time or before; ingest_time never goes back within a root.
SELECT seq FROM noetl.event
WHERE root_id = $1 AND root_type = $2 AND ingest_time <= $3
ORDER BY seq DESC
LIMIT 1
