-- The table of a projection store in a DuckDB file. No primary key: one process writes at a time.
CREATE TABLE IF NOT EXISTS projection (
  projection_id      VARCHAR NOT NULL,
  projection_type    VARCHAR NOT NULL,
  tenant_id          VARCHAR NOT NULL,
  organization_id    VARCHAR NOT NULL,
  execution_id       BIGINT,
  version            BIGINT NOT NULL,
  place              VARCHAR NOT NULL,
  labels             VARCHAR[] NOT NULL,
  state              BLOB NOT NULL,
  first_position     BIGINT NOT NULL,
  last_position      BIGINT NOT NULL,
  projection_version INTEGER NOT NULL,
  checksum           VARCHAR NOT NULL
)
