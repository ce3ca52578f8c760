-- The newest event of a root.
SELECT event_id FROM noetl.event WHERE root_id = $1 ORDER BY seq DESC LIMIT 1
