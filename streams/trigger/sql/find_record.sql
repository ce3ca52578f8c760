-- What became of one record.
SELECT execution_id, rejected_id FROM noetl.trigger_ledger
WHERE topic_id = $1 AND partition = $2 AND record_offset = $3 AND reader = $4
