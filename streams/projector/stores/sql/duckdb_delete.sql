-- Delete the records of an execution ($1; null: all) up to a version ($2; null: any).
DELETE FROM projection
WHERE $1::BIGINT IS NULL OR (execution_id = $1 AND ($2::BIGINT IS NULL OR version <= $2))
