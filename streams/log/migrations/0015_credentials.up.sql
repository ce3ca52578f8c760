-- A secret can be set, listed without its value, and read only for a task that a worker holds now.

ALTER TABLE noetl.credential ADD COLUMN fields text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN noetl.credential.fields IS 'The names of the sealed fields.';

-- Everything but nonce and ciphertext; nobody but the owner reads those from the table.
REVOKE SELECT ON noetl.credential FROM noetl_append;
GRANT SELECT (credential_id, tenant_id, organization_id, name, kind, revision, key_id, fields, created_at, updated_at)
  ON noetl.credential TO noetl_append;

-- Answers with one row while the attempt is the worker's, and with none otherwise. The newest event of the
-- frame or command says whose it is, and since when; the clock is this server's, as it is for leases.
CREATE FUNCTION noetl.credential_for_claim(
  p_execution_id bigint, p_stream_id text, p_attempt integer, p_worker text, p_name text)
RETURNS TABLE (
  tenant_id text, organization_id text, catalog_id bigint, version integer, step text,
  seconds_left double precision, kind text, key_id text, nonce bytea, ciphertext bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH newest AS (
    SELECT e.root_id, e.tenant_id, e.organization_id, e.event_type, e.node_name, e.ingest_time, e.meta
    FROM noetl.event e
    WHERE e.root_id = p_execution_id AND e.root_type = 'execution' AND e.stream_id = p_stream_id
    ORDER BY e.stream_version DESC
    LIMIT 1
  ), claim AS (
    SELECT n.root_id, n.tenant_id, n.organization_id, n.node_name,
      extract(epoch FROM n.ingest_time + make_interval(secs => (n.meta->>'lease_seconds')::integer)
        - (clock_timestamp() AT TIME ZONE 'UTC'))::double precision AS seconds_left
    FROM newest n JOIN noetl.root_head h ON h.root_id = n.root_id AND NOT h.terminal
    WHERE n.event_type IN ('frame.claimed', 'frame.heartbeat', 'command.claimed', 'command.heartbeat')
      AND n.meta->>'worker' = p_worker AND (n.meta->>'attempt')::integer = p_attempt
  )
  SELECT c.tenant_id, c.organization_id, f.catalog_id, (f.meta->>'version')::integer, c.node_name,
    c.seconds_left, s.kind, s.key_id, s.nonce, s.ciphertext
  FROM claim c
  JOIN noetl.event f ON f.root_id = c.root_id AND f.seq = 1
  LEFT JOIN noetl.credential s
    ON s.tenant_id = c.tenant_id AND s.organization_id = c.organization_id AND s.name = p_name
  WHERE c.seconds_left > 0
$$;
REVOKE EXECUTE ON FUNCTION noetl.credential_for_claim FROM PUBLIC;
GRANT EXECUTE ON FUNCTION noetl.credential_for_claim TO noetl_append;
