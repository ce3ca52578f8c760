-- The whole log after a cut, below every transaction that is still running.
SELECT seq, position, stream_version, ingest_time, chain, envelope, xid::text AS xid
FROM noetl.event
WHERE (xid, position) > ($1::text::xid8, $2::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY xid, position
LIMIT $3
