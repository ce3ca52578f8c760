-- Insert incoming records that nothing as new is stored for.
INSERT INTO projection SELECT * FROM incoming
WHERE NOT EXISTS (FROM projection AS known WHERE known.projection_id = incoming.projection_id)
