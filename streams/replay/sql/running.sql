-- Whether a transaction below an id is still running.
SELECT pg_snapshot_xmin(pg_current_snapshot()) < $1::text::xid8 AS running
