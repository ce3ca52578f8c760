-- How far each shard read the partitions of some topics; $1: the projection.
SELECT shard_id, topic, topic_id, partition, next_offset, last_position, updated_at
FROM noetl.projection_checkpoint
WHERE projection = $1 AND topic = ANY ($2)
