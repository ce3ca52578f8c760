-- How many rows a partition has between two places, and behind the second one.
SELECT
  count(*) FILTER (WHERE record_offset >= $3 AND record_offset < $4) AS entered,
  count(*) FILTER (WHERE record_offset >= $4) AS beyond
FROM noetl.trigger_ledger WHERE topic_id = $1 AND partition = $2 AND reader = $5
