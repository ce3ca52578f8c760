-- The roots of a type that have begun and not ended, oldest first.
SELECT root_id FROM noetl.root_head WHERE root_type = $1 AND NOT terminal AND seq > 0 ORDER BY root_id
