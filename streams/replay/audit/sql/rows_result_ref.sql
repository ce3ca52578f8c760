-- Rows of results by their ids.
SELECT * FROM noetl.result_ref WHERE ref_id = ANY($1::bigint[])
