-- The last record of a partition that a reader entered. It enters a partition in order.
SELECT max(record_offset) AS last FROM noetl.trigger_ledger
WHERE topic_id = $1 AND partition = $2 AND reader = $3
