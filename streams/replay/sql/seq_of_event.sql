-- The place of an event in its root.
SELECT seq FROM noetl.event WHERE root_id = $1 AND root_type = $2 AND event_id = $3
