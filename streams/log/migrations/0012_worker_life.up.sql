-- Which life each worker is in. A worker that was killed comes back under its own name and with a
-- new life: the planner then need not wait for the leases of the old one. Coordination, not truth:
-- without a row, leases run out by themselves.
CREATE TABLE noetl.worker_life (
  worker   text PRIMARY KEY,
  life     text NOT NULL,
  began_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
GRANT SELECT, INSERT, UPDATE ON noetl.worker_life TO noetl_append;
GRANT SELECT ON noetl.worker_life TO noetl_read;
