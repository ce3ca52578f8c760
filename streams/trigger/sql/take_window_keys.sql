-- Give keys their executions for a window, unless they have one; waits for another who is about to.
-- The caller sorts the keys, so that two who want the same ones never wait for each other.
INSERT INTO noetl.subscription_key AS k (reader, message_key, execution_id, expires_at)
SELECT reader, message_key, execution_id, now() + window_s * interval '1 second'
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::integer[]) AS w (reader, message_key, execution_id, window_s)
ON CONFLICT (reader, message_key) DO UPDATE
  SET execution_id = EXCLUDED.execution_id, expires_at = EXCLUDED.expires_at
  WHERE k.expires_at <= now()
