-- Results that have ended; a row that is newer in the table stays.
UPDATE noetl.result_ref SET expired_at = ended.expired_at, last_seq = ended.last_seq
FROM jsonb_populate_recordset(NULL::noetl.result_ref, $1::jsonb) AS ended
WHERE result_ref.ref_id = ended.ref_id AND ended.last_seq > result_ref.last_seq
