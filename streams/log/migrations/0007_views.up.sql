-- The specification's names over our events.

-- A framed fan-out says "shard" with its frames: the same facts under the loop names.
CREATE VIEW noetl.frame_as_shard AS
SELECT event_id, execution_id, root_id, seq, position,
  CASE event_type
    WHEN 'frame.dispatched' THEN 'loop.shard.enqueued'
    WHEN 'frame.committed' THEN 'loop.shard.done'
    WHEN 'frame.abandoned' THEN 'loop.shard.failed'
  END AS event_type,
  tenant_id, organization_id, catalog_id, parent_execution_id, node_name, node_type, status, error,
  current_index, current_item, meta, context, result, ingest_time AT TIME ZONE 'UTC' AS created_at
FROM noetl.event
WHERE meta ? 'loop_id' AND meta ? 'shard_id' AND (
  event_type = 'frame.dispatched' AND meta->>'attempt' = '1'
  OR event_type = 'frame.committed' AND meta->>'continues' = 'false'
  OR event_type = 'frame.abandoned');

-- The log as earlier documents name it, the loop names included.
CREATE VIEW noetl.event_log AS
SELECT event_id, execution_id, root_id, seq, position, event_type, tenant_id, organization_id, catalog_id,
  parent_execution_id, node_name, node_type, status, error, current_index, current_item, meta, context, result,
  ingest_time AT TIME ZONE 'UTC' AS created_at
FROM noetl.event
UNION ALL
SELECT * FROM noetl.frame_as_shard;

-- Everything about loops, under the specification's event types.
CREATE VIEW noetl.loop_event AS
SELECT * FROM noetl.event_log WHERE event_type LIKE 'loop.%';

GRANT SELECT ON noetl.frame_as_shard, noetl.loop_event, noetl.event_log
  TO noetl_append, noetl_read, noetl_project, noetl_collect;
