-- The partitions of the log in which no execution can begin any more, with their bounds, oldest first.
WITH bounds AS (
  SELECT c.relname::text AS name, regexp_match(pg_get_expr(c.relpartbound, c.oid),
    'FROM \((MINVALUE|''?-?\d+''?)\) TO \(''?(-?\d+)''?\)') AS found
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'noetl.event'::regclass
)
SELECT name, CASE WHEN found[1] = 'MINVALUE' THEN -9223372036854775808 ELSE trim('''' FROM found[1])::bigint END AS low,
  found[2]::bigint AS high
FROM bounds
WHERE found[2]::bigint <= noetl.lowest_id_at(clock_timestamp())
ORDER BY low
