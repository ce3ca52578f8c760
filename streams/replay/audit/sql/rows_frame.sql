-- Rows of frames by their ids.
SELECT * FROM noetl.frame WHERE frame_id = ANY($1::bigint[])
