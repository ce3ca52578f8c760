-- How many roots and events the log has of some types.
SELECT count(*) AS roots, coalesce(sum(seq), 0)::bigint AS events
FROM noetl.root_head WHERE root_type = ANY ($1) AND ($2::bigint IS NULL OR root_id = $2)
