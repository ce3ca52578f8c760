-- A shard is enqueued once, also if other frames continue it, and failed if a row failed at one of its checkpoints,
-- which the projection of frames counts.
CREATE OR REPLACE VIEW noetl.frame_as_shard AS
SELECT e.event_id, e.execution_id, e.root_id, e.seq, e.position,
  CASE
    WHEN e.event_type = 'frame.dispatched' THEN 'loop.shard.enqueued'
    WHEN e.event_type = 'frame.abandoned' OR parts.failed > 0 THEN 'loop.shard.failed'
    ELSE 'loop.shard.done'
  END AS event_type,
  e.tenant_id, e.organization_id, e.catalog_id, e.parent_execution_id, e.node_name, e.node_type, e.status,
  CASE
    WHEN e.event_type = 'frame.committed' AND parts.failed > 0
    THEN coalesce(e.error, parts.failed || ' of ' || parts.rows || ' rows failed')
    ELSE e.error
  END AS error,
  e.current_index, e.current_item,
  CASE
    WHEN e.event_type = 'frame.dispatched' THEN e.meta
    ELSE e.meta || jsonb_build_object('command_id', e.meta->>'frame_id')
  END AS meta,
  e.context,
  CASE
    WHEN e.event_type = 'frame.dispatched' THEN e.result
    WHEN e.event_type = 'frame.abandoned' OR parts.failed > 0
    THEN (jsonb_build_object('status', 'error') || coalesce(e.result::jsonb, '{}'))::json
    ELSE (jsonb_build_object('status', 'ok') || coalesce(e.result::jsonb, '{}'))::json
  END AS result,
  e.ingest_time AT TIME ZONE 'UTC' AS created_at
FROM noetl.event e
LEFT JOIN noetl.frame ON e.event_type = 'frame.committed' AND frame.frame_id = (e.meta->>'frame_id')::bigint
CROSS JOIN LATERAL (
  SELECT
    greatest(frame.rows_failed, (e.meta->>'failed_rows')::bigint, 0) AS failed,
    greatest(frame.row_count, (e.meta->>'rows')::bigint, 0) AS rows
) AS parts
WHERE e.meta ? 'loop_id' AND e.meta ? 'shard_id' AND (
  e.event_type = 'frame.dispatched' AND e.meta->>'attempt' = '1' AND e.context->'cursor'->>'continues' IS NULL
  OR e.event_type = 'frame.committed' AND e.meta->>'continues' = 'false'
  OR e.event_type = 'frame.abandoned');
