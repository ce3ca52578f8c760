-- The records with these ids.
SELECT * FROM projection WHERE projection_id IN (SELECT unnest($1::VARCHAR[]))
