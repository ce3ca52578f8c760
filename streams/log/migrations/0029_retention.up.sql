-- Retention: how long a tenant's ended executions stay in the log, and where archived ones are.

CREATE TABLE noetl.retention_policy (
  tenant_id  text PRIMARY KEY,
  keep_days  integer NOT NULL CHECK (keep_days >= 0),
  updated_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE noetl.retention_policy IS 'Executions of a tenant without a policy stay in the log.';

-- An archive: the executions of one organization that left one partition together.
CREATE TABLE noetl.archive (
  archive_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partition       text NOT NULL,
  tenant_id       text NOT NULL,
  organization_id text NOT NULL,
  executions      bigint NOT NULL,
  events          bigint NOT NULL,
  byte_length     bigint NOT NULL,
  manifest        jsonb NOT NULL,
  objects         text NOT NULL,
  detached_table  text NOT NULL,
  archived_at     timestamptz NOT NULL DEFAULT now(),
  dropped_at      timestamptz
);
COMMENT ON COLUMN noetl.archive.manifest IS 'Reference of the manifest in the payload store.';
COMMENT ON COLUMN noetl.archive.objects IS 'Locators of the manifest and of all segments, for the collector of payloads.';

CREATE TABLE noetl.archived_root (
  root_id             bigint PRIMARY KEY,
  archive_id          bigint NOT NULL REFERENCES noetl.archive,
  parent_execution_id bigint,
  seq                 bigint NOT NULL,
  chain               bytea NOT NULL,
  pieces              jsonb NOT NULL,
  payloads            text NOT NULL,
  expired             text NOT NULL
);
CREATE INDEX archived_root_by_archive ON noetl.archived_root (archive_id);
COMMENT ON COLUMN noetl.archived_root.payloads IS 'Payloads that its events still referred to, for the collector.';
COMMENT ON COLUMN noetl.archived_root.expired IS 'Payloads that its events name although they had expired.';

-- Partitions that left the log, until an operator drops them.
CREATE SCHEMA noetl_detached;

-- An archived execution is final: its later events (a redrive, an expiry) are refused. Only partitions that
-- executions were archived from have this trigger.
CREATE FUNCTION noetl.refuse_archived() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF EXISTS (SELECT FROM noetl.archived_root a WHERE a.root_id = NEW.root_id) THEN
    RAISE EXCEPTION 'execution % is archived, so its event_type % is refused', NEW.root_id, NEW.event_type
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION noetl.refuse_archived() FROM PUBLIC;

GRANT SELECT ON noetl.retention_policy, noetl.archive, noetl.archived_root TO
  noetl_read, noetl_project, noetl_collect, noetl_append, noetl_mirror;
