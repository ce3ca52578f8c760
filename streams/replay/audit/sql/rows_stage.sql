-- Rows of stages by their ids.
SELECT * FROM noetl.stage WHERE stage_id = ANY($1::bigint[])
