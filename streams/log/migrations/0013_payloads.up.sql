-- What the collector of payloads remembers. All of it can be found again by reading payloads.

-- Whose objects a bucket holds: the collector takes no bucket that another log's collector has marked.
CREATE TABLE noetl.payload_owner (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  log_id   uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO noetl.payload_owner DEFAULT VALUES;

-- The payloads that a payload names; its content never changes, so it is read once.
CREATE TABLE noetl.payload_link (
  key     text PRIMARY KEY,
  links   text[] NOT NULL
);

GRANT SELECT ON noetl.payload_owner TO noetl_collect, noetl_read;
GRANT SELECT, INSERT, DELETE ON noetl.payload_link TO noetl_collect;
