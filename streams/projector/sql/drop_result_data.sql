-- Copies of results that have ended.
DELETE FROM noetl.result_data USING noetl.result_ref, jsonb_populate_recordset(NULL::noetl.result_ref, $1::jsonb) AS ended
WHERE result_ref.ref_id = ended.ref_id AND result_data.ref = result_ref.ref
