-- The barriers that bound how far a replay reads back: the snapshots, under the name and columns that others know.
DROP TABLE noetl.checkpoint;
CREATE VIEW noetl.checkpoint AS
SELECT
  s.aggregate_id::bigint AS execution_id,
  s.position AS barrier,
  s.seq,
  jsonb_build_object('table', 'noetl.snapshot', 'projection', s.projection, 'seq', s.seq, 'chain', s.chain) AS state_ref,
  s.checksum,
  s.created_at
FROM noetl.snapshot s
WHERE s.aggregate_type = 'execution' AND s.projection = 'all';
COMMENT ON VIEW noetl.checkpoint IS
  'Barriers of replay: one for each snapshot; barrier is the position in the log, state_ref the row with the state.';

GRANT SELECT ON noetl.checkpoint TO noetl_read, noetl_project;
