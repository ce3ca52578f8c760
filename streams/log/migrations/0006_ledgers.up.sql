-- Input and secrets: not derived, so never dropped and folded again.

-- Which trigger record became which execution. One row per record, one execution per key.
CREATE TABLE noetl.trigger_ledger (
  topic_id        text NOT NULL,
  partition       integer NOT NULL,
  record_offset   bigint NOT NULL,
  topic           text NOT NULL,
  tenant_id       text NOT NULL,
  organization_id text NOT NULL,
  trigger_key     text NOT NULL,
  execution_id    bigint,
  rejected_id     bigint,
  received_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (topic_id, partition, record_offset),
  CHECK (num_nonnulls(execution_id, rejected_id) = 1)
);
CREATE TABLE noetl.trigger_key (
  tenant_id    text NOT NULL,
  trigger_key  text NOT NULL,
  execution_id bigint NOT NULL,
  PRIMARY KEY (tenant_id, trigger_key)
);

-- Encrypted by the program; the key is never in the database.
CREATE TABLE noetl.credential (
  credential_id   bigint PRIMARY KEY,
  tenant_id       text NOT NULL,
  organization_id text NOT NULL,
  name            text NOT NULL,
  kind            text NOT NULL,
  revision        integer NOT NULL DEFAULT 1,
  key_id          text NOT NULL,
  nonce           bytea NOT NULL,
  ciphertext      bytea NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  UNIQUE (tenant_id, organization_id, name)
);

GRANT SELECT, INSERT ON noetl.trigger_ledger, noetl.trigger_key TO noetl_append;
GRANT SELECT, INSERT, UPDATE, DELETE ON noetl.credential TO noetl_append;
GRANT SELECT ON noetl.trigger_ledger, noetl.trigger_key TO noetl_read;
