-- The last place of a root at or below a position of the whole log.
SELECT seq FROM noetl.event
WHERE root_id = $1 AND root_type = $2 AND position <= $3
ORDER BY seq DESC
LIMIT 1
