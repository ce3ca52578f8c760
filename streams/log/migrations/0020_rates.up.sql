-- Rates that hold over all workers: when the next call under a key may be made. A worker takes a
-- slice of future times by moving it on; the times of a worker that died pass unused.
-- Coordination, not truth: without a row, a key begins anew.
CREATE TABLE noetl.rate_bucket (
  key     text PRIMARY KEY,
  next_at timestamptz NOT NULL
) WITH (fillfactor = 50);
GRANT SELECT, INSERT, UPDATE, DELETE ON noetl.rate_bucket TO noetl_append;
GRANT SELECT ON noetl.rate_bucket TO noetl_read;
