CREATE OR REPLACE VIEW noetl.frame_as_shard AS
SELECT event_id, execution_id, root_id, seq, position,
  CASE
    WHEN event_type = 'frame.dispatched' THEN 'loop.shard.enqueued'
    WHEN event_type = 'frame.abandoned' OR (meta->>'failed_rows')::bigint > 0 THEN 'loop.shard.failed'
    ELSE 'loop.shard.done'
  END AS event_type,
  tenant_id, organization_id, catalog_id, parent_execution_id, node_name, node_type, status,
  CASE
    WHEN event_type = 'frame.committed' AND (meta->>'failed_rows')::bigint > 0
    THEN coalesce(error, (meta->>'failed_rows') || ' of ' || (meta->>'rows') || ' rows failed')
    ELSE error
  END AS error,
  current_index, current_item,
  CASE
    WHEN event_type = 'frame.dispatched' THEN meta
    ELSE meta || jsonb_build_object('command_id', meta->>'frame_id')
  END AS meta,
  context,
  CASE
    WHEN event_type = 'frame.dispatched' THEN result
    WHEN event_type = 'frame.abandoned' OR (meta->>'failed_rows')::bigint > 0
    THEN (jsonb_build_object('status', 'error') || coalesce(result::jsonb, '{}'))::json
    ELSE (jsonb_build_object('status', 'ok') || coalesce(result::jsonb, '{}'))::json
  END AS result,
  ingest_time AT TIME ZONE 'UTC' AS created_at
FROM noetl.event
WHERE meta ? 'loop_id' AND meta ? 'shard_id' AND (
  event_type = 'frame.dispatched' AND meta->>'attempt' = '1'
  OR event_type = 'frame.committed' AND meta->>'continues' = 'false'
  OR event_type = 'frame.abandoned');
