-- Worker ids: 1024 numbers, each lent to one process at a time. They keep the ids of different
-- processes apart within one millisecond, so a number must never be held twice.

CREATE TABLE noetl.worker_id (
  worker_id    integer PRIMARY KEY CHECK (worker_id BETWEEN 0 AND 1023),
  holder       text,
  leased_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

INSERT INTO noetl.worker_id (worker_id) SELECT generate_series(0, 1023);

-- Lends the number that has been free the longest. A number rests for 10 s after its lease ended
-- or was given back: clocks may be 5 s off Postgres to either side, and the next holder must not
-- give ids of a time in which the last one still did. Two claims at once lock different rows.
CREATE FUNCTION noetl.claim_worker_id(
  p_holder text, p_lease_seconds integer,
  OUT worker_id integer, OUT leased_until timestamptz, OUT db_time timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  free_at timestamptz;
BEGIN
  IF p_lease_seconds NOT BETWEEN 1 AND 3600 THEN
    RAISE EXCEPTION 'a lease of % s is not between 1 and 3600 s', p_lease_seconds
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  UPDATE noetl.worker_id w
    SET holder = p_holder, leased_until = clock_timestamp() + make_interval(secs => p_lease_seconds)
    WHERE w.worker_id = (
      SELECT c.worker_id FROM noetl.worker_id c
      WHERE c.leased_until < clock_timestamp() - interval '10 s'
      ORDER BY c.leased_until, c.worker_id
      LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING w.worker_id, w.leased_until INTO worker_id, leased_until;
  IF NOT FOUND THEN
    SELECT min(w.leased_until) + interval '10 s' INTO free_at FROM noetl.worker_id w;
    RAISE EXCEPTION 'all 1024 worker ids are taken; the next may be free at %',
      to_char(free_at AT TIME ZONE 'UTC', 'HH24:MI:SS "UTC"')
      USING ERRCODE = 'configuration_limit_exceeded';
  END IF;
  db_time := clock_timestamp();
END $$;

-- Prolongs a lease. Late is good enough: as long as the holder still stands here nobody else had
-- the number. No row means that somebody has it now.
CREATE FUNCTION noetl.renew_worker_id(p_worker_id integer, p_holder text, p_lease_seconds integer)
RETURNS TABLE (worker_id integer, leased_until timestamptz, db_time timestamptz)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE noetl.worker_id w
    SET leased_until = clock_timestamp() + make_interval(secs => p_lease_seconds)
    WHERE w.worker_id = p_worker_id AND w.holder = p_holder
    RETURNING w.worker_id, w.leased_until, clock_timestamp()
$$;

-- Gives a number back; it still rests before it is lent again.
CREATE FUNCTION noetl.release_worker_id(p_worker_id integer, p_holder text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH given_back AS (
    UPDATE noetl.worker_id w
      SET holder = NULL, leased_until = least(w.leased_until, clock_timestamp())
      WHERE w.worker_id = p_worker_id AND w.holder = p_holder
      RETURNING 1)
  SELECT EXISTS (SELECT FROM given_back)
$$;

REVOKE ALL ON FUNCTION
  noetl.claim_worker_id(text, integer),
  noetl.renew_worker_id(integer, text, integer),
  noetl.release_worker_id(integer, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
  noetl.claim_worker_id(text, integer),
  noetl.renew_worker_id(integer, text, integer),
  noetl.release_worker_id(integer, text) TO noetl_append;
GRANT SELECT ON noetl.worker_id TO noetl_read;
