-- How far each partition was read; a topic made anew begins again, so its id decides.
INSERT INTO noetl.projection_checkpoint AS known (
  projection, shard_id, topic, topic_id, partition, next_offset, last_position, updated_at
)
SELECT projection, shard_id, topic, topic_id, partition, next_offset, last_position, now()
FROM jsonb_populate_recordset(NULL::noetl.projection_checkpoint, $1::jsonb)
ON CONFLICT (projection, shard_id, topic, partition) DO UPDATE SET
  topic_id = excluded.topic_id, next_offset = excluded.next_offset,
  last_position = excluded.last_position, updated_at = excluded.updated_at
WHERE excluded.topic_id <> known.topic_id OR excluded.next_offset > known.next_offset
