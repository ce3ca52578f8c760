-- Versions of business projections between which readers are switched; without a row, the newest version serves.
CREATE TABLE noetl.projection_version (
  tenant_id          text NOT NULL,
  organization_id    text NOT NULL,
  projection         text NOT NULL,
  version            integer NOT NULL,
  status             text NOT NULL CHECK (status IN ('building', 'shadow', 'serving', 'previous', 'dropped')),
  declaration        jsonb NOT NULL,
  declaration_digest text NOT NULL,
  changed_at         timestamptz NOT NULL,
  cutover_position   bigint,
  PRIMARY KEY (tenant_id, organization_id, projection, version)
);
COMMENT ON COLUMN noetl.projection_version.cutover_position IS 'The position in the log up to which the other version served.';

GRANT SELECT ON noetl.projection_version TO noetl_read;
GRANT SELECT, INSERT, UPDATE, DELETE ON noetl.projection_version TO noetl_project;
