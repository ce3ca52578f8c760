-- The functions as migration 0004 made them.

-- Inserts events whose roots are locked, and moves the heads. Raises unique_violation on any key seen before.
-- Places are worked out on narrow rows, because sorting the wide ones costs more than inserting them.
CREATE OR REPLACE FUNCTION noetl.insert_events(p_events noetl.new_event[]) RETURNS SETOF noetl.appended
LANGUAGE sql AS $$
  WITH e AS MATERIALIZED (
    SELECT * FROM unnest(p_events) WITH ORDINALITY
  ), ranked AS (
    SELECT n.*,
      h.seq + row_number() OVER of_root AS seq,
      coalesce(s.version, 0) + row_number() OVER (PARTITION BY n.root_id, n.stream_id ORDER BY n.ordinality) AS stream_version,
      greatest(h.ingest_time, (clock_timestamp() AT TIME ZONE 'UTC')::timestamp(3)) AS ingest_time,
      noetl.chain(decode(n.checksum, 'hex'), h.chain) OVER of_root AS chain
    FROM (SELECT ordinality, batch, event_id, root_id, stream_id, checksum, expected_version, ends, reopens FROM e) n
    JOIN noetl.root_head h ON h.root_id = n.root_id
    LEFT JOIN LATERAL (
      SELECT x.stream_version AS version FROM noetl.event x
      WHERE x.root_id = n.root_id AND x.stream_id = n.stream_id
      ORDER BY x.stream_version DESC LIMIT 1
    ) s ON true
    WINDOW of_root AS (PARTITION BY n.root_id ORDER BY n.ordinality)
    ORDER BY n.ordinality
  ), placed AS MATERIALIZED (
    SELECT *, nextval('noetl.event_position_seq') AS position FROM ranked
  ), inserted AS (
    INSERT INTO noetl.event (
      root_id, seq, position, root_type, event_id, parent_execution_id, catalog_id, tenant_id, organization_id,
      stream_id, stream_version, aggregate_type, aggregate_id, event_type, schema_name, schema_version,
      event_time, ingest_time, producer, causation_id, correlation_id, idempotency_key, claim,
      node_name, node_type, status, error, current_index, current_item, meta, context, result,
      payload_ref, trace, checksum, digest, chain, envelope)
    OVERRIDING SYSTEM VALUE
    SELECT
      e.root_id, p.seq, p.position, e.root_type, e.event_id, e.parent_execution_id, e.catalog_id, e.tenant_id,
      e.organization_id, e.stream_id, p.stream_version, e.aggregate_type, e.aggregate_id, e.event_type,
      e.schema_name, e.schema_version, timestamptz 'epoch' + e.event_time * interval '1 millisecond',
      p.ingest_time, e.producer, e.causation_id, e.correlation_id, e.idempotency_key, e.claim, e.node_name,
      e.node_type, e.status, e.error, e.current_index, e.current_item::json, e.meta::jsonb, e.context::json,
      e.result::json, e.payload_ref::json, e.trace, decode(e.checksum, 'hex'), e.digest, p.chain, e.envelope
    FROM e JOIN placed p USING (ordinality)
  ), newest AS (
    SELECT root_id, max(seq) AS seq, max(ingest_time) AS ingest_time,
      (array_agg(chain ORDER BY seq DESC))[1] AS chain,
      (array_agg(ends ORDER BY seq DESC) FILTER (WHERE ends OR reopens))[1] AS terminal
    FROM placed GROUP BY root_id
  ), moved AS (
    UPDATE noetl.root_head h
    SET seq = n.seq, ingest_time = n.ingest_time, chain = n.chain, terminal = coalesce(n.terminal, h.terminal)
    FROM newest n WHERE n.root_id = h.root_id
  )
  SELECT batch, event_id, 'appended', event_id, seq, position, stream_version, ingest_time, chain,
    CASE WHEN stream_version - 1 <> expected_version THEN 'version' END, NULL::text
  FROM placed
$$;

-- The one way into the log. Locks in ascending root id; tries everything at once, and only when
-- something is amiss judges batch by batch.
CREATE OR REPLACE FUNCTION noetl.append(p_events noetl.new_event[]) RETURNS SETOF noetl.appended
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Plans are kept for the life of a connection, also those made while the log was still empty.
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  roots bigint[];
  amiss boolean;
  answers noetl.appended[];
  one_batch noetl.new_event[] := '{}';
  last integer := array_upper(p_events, 1);
BEGIN
  -- Advisory locks, because a row lock would already give this transaction its id: while it then
  -- waited for another root, a younger id could append there first, and ids would contradict seq.
  SELECT array_agg(DISTINCT e.root_id ORDER BY e.root_id) INTO roots FROM unnest(p_events) e;
  PERFORM pg_advisory_xact_lock(r) FROM unnest(roots) r;
  IF cardinality(roots) > (SELECT count(*) FROM noetl.root_head h WHERE h.root_id = ANY (roots)) THEN
    INSERT INTO noetl.root_head (root_id, root_type, tenant_id, organization_id)
      SELECT DISTINCT ON (e.root_id) e.root_id, e.root_type, e.tenant_id, e.organization_id
      FROM unnest(p_events) e
      WHERE NOT EXISTS (SELECT FROM noetl.root_head h WHERE h.root_id = e.root_id);
  END IF;

  SELECT bool_or(
      (h.terminal OR coalesce(bool_or_before, false)) AND NOT after_end
      OR h.root_type <> e.root_type OR h.tenant_id <> e.tenant_id OR h.organization_id <> e.organization_id)
    INTO amiss
    FROM (
      SELECT x.root_id, x.root_type, x.tenant_id, x.organization_id, x.after_end,
        bool_or(x.ends) OVER (PARTITION BY x.root_id ORDER BY x.ordinality
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bool_or_before
      FROM unnest(p_events) WITH ORDINALITY x
    ) e JOIN noetl.root_head h USING (root_id);

  IF NOT amiss THEN
    BEGIN
      SELECT array_agg(a) INTO answers FROM noetl.insert_events(p_events) a;
      IF NOT EXISTS (SELECT FROM unnest(answers) a WHERE a.reason IS NOT NULL) THEN
        RETURN QUERY SELECT * FROM unnest(answers);
        RETURN;
      END IF;
      RAISE SQLSTATE 'NO001';
    EXCEPTION WHEN unique_violation OR SQLSTATE 'NO001' THEN
      NULL;
    END;
  END IF;

  FOR i IN 1 .. last LOOP
    one_batch := one_batch || p_events[i];
    IF i = last OR p_events[i + 1].batch <> p_events[i].batch THEN
      -- A root without events belongs to whoever is the first to append, not to who was refused.
      UPDATE noetl.root_head h SET root_type = f.root_type, tenant_id = f.tenant_id, organization_id = f.organization_id
        FROM (SELECT DISTINCT ON (x.root_id) x.* FROM unnest(one_batch) WITH ORDINALITY x ORDER BY x.root_id, x.ordinality) f
        WHERE h.root_id = f.root_id AND h.seq = 0;
      RETURN QUERY SELECT * FROM noetl.append_batch(one_batch);
      one_batch := '{}';
    END IF;
  END LOOP;
  DELETE FROM noetl.root_head WHERE root_id = ANY (roots) AND seq = 0;
END $$;

DROP FUNCTION IF EXISTS noetl.insert_apart(noetl.new_event[]);
DROP FUNCTION IF EXISTS noetl.amiss();
