-- The tables of a projection store, in a database of its own or another one; repeatable.
SELECT pg_advisory_xact_lock(hashtext('noetl_projections'));
CREATE SCHEMA IF NOT EXISTS noetl_projections;
CREATE TABLE IF NOT EXISTS noetl_projections.projection (
  projection_id      text COLLATE "C" PRIMARY KEY,
  projection_type    text NOT NULL,
  tenant_id          text NOT NULL,
  organization_id    text NOT NULL,
  execution_id       bigint,
  version            bigint NOT NULL,
  place              text COLLATE "C" NOT NULL,
  labels             text[] NOT NULL,
  state              bytea NOT NULL,
  first_position     bigint NOT NULL,
  last_position      bigint NOT NULL,
  projection_version integer NOT NULL,
  checksum           text NOT NULL
);
CREATE INDEX IF NOT EXISTS projection_by_place
  ON noetl_projections.projection (tenant_id, organization_id, projection_type, place, projection_id);
CREATE INDEX IF NOT EXISTS projection_by_execution
  ON noetl_projections.projection (execution_id) WHERE execution_id IS NOT NULL;
