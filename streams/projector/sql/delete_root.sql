-- Rows of one root as of a place in it or before; $1: its id, $2: the place. Newer ones stay.
WITH of_execution AS (
  DELETE FROM noetl.execution WHERE execution_id = $1 AND last_seq <= $2
), of_stages AS (
  DELETE FROM noetl.stage WHERE execution_id = $1 AND last_seq <= $2
), of_frames AS (
  DELETE FROM noetl.frame WHERE execution_id = $1 AND last_seq <= $2
), of_outputs AS (
  DELETE FROM noetl.frame_output WHERE execution_id = $1 AND last_seq <= $2
), of_commands AS (
  DELETE FROM noetl.command WHERE execution_id = $1 AND last_seq <= $2
), of_results AS (
  DELETE FROM noetl.result_ref WHERE execution_id = $1 AND last_seq <= $2
), of_snapshots AS (
  DELETE FROM noetl.snapshot WHERE aggregate_type = 'execution' AND aggregate_id = $1::bigint::text AND seq <= $2
)
DELETE FROM noetl.catalog WHERE catalog_id = $1 AND last_seq <= $2
