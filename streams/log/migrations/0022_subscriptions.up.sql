-- A record may be read by the trigger's own group and by any number of subscriptions. `reader` is
-- '' for the trigger topic and HTTP, else the catalog id of the subscription, and for a replay
-- also its number.
ALTER TABLE noetl.trigger_ledger ADD COLUMN reader text NOT NULL DEFAULT '';
ALTER TABLE noetl.trigger_ledger DROP CONSTRAINT trigger_ledger_pkey;
ALTER TABLE noetl.trigger_ledger ADD PRIMARY KEY (topic_id, partition, reader, record_offset);
-- Executions of a subscription that have not ended are counted by this.
CREATE INDEX trigger_ledger_started ON noetl.trigger_ledger (execution_id) WHERE reader <> '';

-- Keys of messages, each for the window of its subscription.
CREATE TABLE noetl.subscription_key (
  reader       text NOT NULL,
  message_key  text NOT NULL,
  execution_id bigint NOT NULL,
  expires_at   timestamptz NOT NULL,
  PRIMARY KEY (reader, message_key)
);
CREATE INDEX subscription_key_expiry ON noetl.subscription_key (reader, expires_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON noetl.subscription_key TO noetl_append;
GRANT SELECT ON noetl.subscription_key TO noetl_read;

-- Trigger processes ask every few seconds which subscriptions there are.
CREATE INDEX event_subscription ON noetl.event (root_id)
  WHERE root_type = 'catalog' AND meta->>'kind' = 'subscription';

-- The secret of a subscription: only that which its newest version names, in its own scope.
CREATE FUNCTION noetl.credential_for_subscription(p_catalog_id bigint, p_name text)
RETURNS TABLE (
  tenant_id text, organization_id text, kind text, key_id text, nonce bytea, ciphertext bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH newest AS (
    SELECT e.tenant_id, e.organization_id, e.meta
    FROM noetl.event e
    WHERE e.root_id = p_catalog_id AND e.root_type = 'catalog' AND e.event_type = 'catalog.registered'
    ORDER BY e.seq DESC
    LIMIT 1
  )
  SELECT s.tenant_id, s.organization_id, s.kind, s.key_id, s.nonce, s.ciphertext
  FROM newest n JOIN noetl.credential s
    ON s.tenant_id = n.tenant_id AND s.organization_id = n.organization_id AND s.name = p_name
  WHERE n.meta->>'kind' = 'subscription' AND n.meta->>'credential' = p_name
$$;
REVOKE EXECUTE ON FUNCTION noetl.credential_for_subscription FROM PUBLIC;
GRANT EXECUTE ON FUNCTION noetl.credential_for_subscription TO noetl_append;
