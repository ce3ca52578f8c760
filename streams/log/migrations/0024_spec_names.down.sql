CREATE OR REPLACE VIEW noetl.event_log AS
SELECT event_id, execution_id, root_id, seq, position, event_type, tenant_id, organization_id, catalog_id,
  parent_execution_id, node_name, node_type, status, error, current_index, current_item, meta, context, result,
  ingest_time AT TIME ZONE 'UTC' AS created_at
FROM noetl.event
UNION ALL
SELECT * FROM noetl.frame_as_shard;

DROP VIEW noetl.step_as_action;
DROP VIEW noetl.frame_as_iterations;

CREATE OR REPLACE VIEW noetl.frame_as_shard AS
SELECT event_id, execution_id, root_id, seq, position,
  CASE
    WHEN event_type = 'frame.dispatched' THEN 'loop.shard.enqueued'
    WHEN event_type = 'frame.abandoned' OR (meta->>'failed_rows')::bigint > 0 THEN 'loop.shard.failed'
    ELSE 'loop.shard.done'
  END AS event_type,
  tenant_id, organization_id, catalog_id, parent_execution_id, node_name, node_type, status, error,
  current_index, current_item, meta, context, result, ingest_time AT TIME ZONE 'UTC' AS created_at
FROM noetl.event
WHERE meta ? 'loop_id' AND meta ? 'shard_id' AND (
  event_type = 'frame.dispatched' AND meta->>'attempt' = '1'
  OR event_type = 'frame.committed' AND meta->>'continues' = 'false'
  OR event_type = 'frame.abandoned');
