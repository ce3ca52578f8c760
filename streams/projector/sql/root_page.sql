-- The next roots of some types, with their last place; $2: after this id, $3: only this one.
SELECT root_id, root_type, seq FROM noetl.root_head
WHERE root_type = ANY ($1) AND root_id > $2 AND ($3::bigint IS NULL OR root_id = $3)
ORDER BY root_id LIMIT $4
