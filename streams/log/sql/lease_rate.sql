-- Takes the next times under a key. $2: how far an idle key may lag behind now, in seconds;
-- $3: the length of the slice. clock_timestamp() is read after the row is locked.
INSERT INTO noetl.rate_bucket AS bucket (key, next_at)
VALUES ($1, clock_timestamp() + make_interval(secs => $3::float8 - $2::float8))
ON CONFLICT (key) DO UPDATE
SET next_at = greatest(bucket.next_at, clock_timestamp() - make_interval(secs => $2::float8))
              + make_interval(secs => $3::float8)
RETURNING extract(epoch FROM next_at)::float8 - $3::float8 AS first_at,
          extract(epoch FROM clock_timestamp())::float8 AS now_at
