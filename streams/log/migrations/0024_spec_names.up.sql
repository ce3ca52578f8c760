-- Spec 002 to the letter: shards have a result's status and the id of their command.
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

-- The iterations of a framed loop, one for each row that a commit or a checkpoint reports: the
-- rows that failed are its last ones, because events do not list every row.
CREATE VIEW noetl.frame_as_iterations AS
SELECT e.event_id, e.execution_id, e.root_id, e.seq, e.position,
  CASE WHEN n.row < e.rows - e.failed THEN 'command.completed' ELSE 'command.failed' END AS event_type,
  e.tenant_id, e.organization_id, e.catalog_id, e.parent_execution_id, e.node_name, e.node_type,
  CASE WHEN n.row < e.rows - e.failed THEN 'success' ELSE 'error' END::text AS status,
  e.error, e.first + n.row AS current_index, NULL::json AS current_item, e.meta, e.context,
  json_build_object('status', CASE WHEN n.row < e.rows - e.failed THEN 'ok' ELSE 'error' END) AS result,
  e.ingest_time AT TIME ZONE 'UTC' AS created_at
FROM (
  SELECT f.*, (f.meta->>'rows')::bigint AS rows, coalesce((f.meta->>'failed_rows')::bigint, 0) AS failed,
    CASE WHEN f.context->'cursor'->>'kind' = 'list' THEN
      (f.context->'cursor'->>(
        CASE WHEN f.event_type = 'frame.committed' AND f.meta->>'continues' = 'false'
        THEN 'to' ELSE 'from' END))::bigint - (f.meta->>'rows')::bigint
    END AS first
  FROM noetl.event f
  WHERE f.meta ? 'loop_id' AND f.event_type IN ('frame.committed', 'frame.heartbeat') AND f.meta ? 'rows'
) e
CROSS JOIN LATERAL generate_series(0, e.rows - 1) AS n(row);

-- Results of steps, under the name of earlier documents.
CREATE VIEW noetl.step_as_action AS
SELECT event_id, execution_id, root_id, seq, position, 'action_completed'::text AS event_type, tenant_id,
  organization_id, catalog_id, parent_execution_id, node_name, node_type, status, error, current_index,
  current_item, meta, context, result, ingest_time AT TIME ZONE 'UTC' AS created_at
FROM noetl.event
WHERE event_type IN ('command.completed', 'loop.done');

CREATE OR REPLACE VIEW noetl.event_log AS
SELECT event_id, execution_id, root_id, seq, position, event_type, tenant_id, organization_id, catalog_id,
  parent_execution_id, node_name, node_type, status, error, current_index, current_item, meta, context, result,
  ingest_time AT TIME ZONE 'UTC' AS created_at
FROM noetl.event
UNION ALL
SELECT * FROM noetl.frame_as_shard
UNION ALL
SELECT * FROM noetl.frame_as_iterations
UNION ALL
SELECT * FROM noetl.step_as_action;

GRANT SELECT ON noetl.frame_as_iterations, noetl.step_as_action
  TO noetl_append, noetl_read, noetl_project, noetl_collect;
