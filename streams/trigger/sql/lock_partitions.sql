-- Hold partitions of the trigger topic until this transaction ends: a process that lost a
-- partition may still be at work on it. Two numbers, so that no root's own lock is meant.
SELECT pg_advisory_xact_lock(hashtext('noetl.triggers/' || p.topic_id), p.partition)
FROM unnest($1::text[], $2::integer[]) AS p (topic_id, partition)
