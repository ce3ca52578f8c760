-- The records of a type that executions have.
SELECT * FROM projection
WHERE projection_type = $2 AND execution_id IN (SELECT unnest($1::BIGINT[]))
