-- The end of the log now; what runs in transactions below xmax can still add events at or before it.
SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS xmax,
  (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM noetl.event_position_seq) AS position,
  clock_timestamp() AT TIME ZONE 'UTC' AS time
