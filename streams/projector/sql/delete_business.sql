-- Business projections of one execution as of a place in it or before; $1: its id, $2: the place. Newer rows stay.
WITH of_states AS (
  DELETE FROM noetl.business_state WHERE execution_id = $1 AND last_seq <= $2
)
DELETE FROM noetl.business_progress WHERE execution_id = $1 AND last_seq <= $2
