-- Delete some keys whose window is over; those that another transaction holds are left to it.
DELETE FROM noetl.subscription_key WHERE (reader, message_key) IN (
  SELECT reader, message_key FROM noetl.subscription_key
  WHERE reader = ANY ($1::text[]) AND expires_at <= now()
  LIMIT 1000 FOR UPDATE SKIP LOCKED)
