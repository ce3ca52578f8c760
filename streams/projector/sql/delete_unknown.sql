-- Rows of roots that the log does not have.
WITH of_stages AS (
  DELETE FROM noetl.stage t WHERE NOT EXISTS (SELECT FROM noetl.root_head h WHERE h.root_id = t.execution_id)
), of_frames AS (
  DELETE FROM noetl.frame t WHERE NOT EXISTS (SELECT FROM noetl.root_head h WHERE h.root_id = t.execution_id)
), of_outputs AS (
  DELETE FROM noetl.frame_output t WHERE NOT EXISTS (SELECT FROM noetl.root_head h WHERE h.root_id = t.execution_id)
), of_commands AS (
  DELETE FROM noetl.command t WHERE NOT EXISTS (SELECT FROM noetl.root_head h WHERE h.root_id = t.execution_id)
), of_results AS (
  DELETE FROM noetl.result_ref t WHERE NOT EXISTS (SELECT FROM noetl.root_head h WHERE h.root_id = t.execution_id)
), of_states AS (
  DELETE FROM noetl.business_state t WHERE NOT EXISTS (SELECT FROM noetl.root_head h WHERE h.root_id = t.execution_id)
), of_progress AS (
  DELETE FROM noetl.business_progress t WHERE NOT EXISTS (SELECT FROM noetl.root_head h WHERE h.root_id = t.execution_id)
), of_catalog AS (
  DELETE FROM noetl.catalog t WHERE NOT EXISTS (SELECT FROM noetl.root_head h WHERE h.root_id = t.catalog_id)
)
DELETE FROM noetl.execution t WHERE NOT EXISTS (SELECT FROM noetl.root_head h WHERE h.root_id = t.execution_id)
