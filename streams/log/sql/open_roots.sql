-- The roots of a type that have begun and not ended, oldest first, with their last seq.
SELECT root_id, seq FROM noetl.root_head WHERE root_type = $1 AND NOT terminal AND seq > 0 ORDER BY root_id
