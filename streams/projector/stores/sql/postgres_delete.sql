-- Delete the records of an execution ($1; null: all) up to a version ($2; null: any).
DELETE FROM noetl_projections.projection
WHERE $1::bigint IS NULL OR (execution_id = $1 AND ($2::bigint IS NULL OR version <= $2))
