-- Ranges of a partition's offsets, from one place up to, not including, another, that have no row.
WITH edges AS (
  SELECT $3::bigint - 1 AS at
  UNION ALL
  SELECT record_offset FROM noetl.trigger_ledger
  WHERE topic_id = $1 AND partition = $2 AND reader = $5 AND record_offset >= $3 AND record_offset < $4
  UNION ALL
  SELECT $4::bigint
), pairs AS (
  SELECT at, lead(at) OVER (ORDER BY at) AS next FROM edges
)
SELECT at + 1 AS first, next AS until FROM pairs WHERE next > at + 1 ORDER BY at
