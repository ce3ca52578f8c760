REVOKE SELECT ON SEQUENCE noetl.event_position_seq FROM noetl_read;
ALTER TABLE noetl.execution DROP COLUMN state_checksum;
DELETE FROM noetl.snapshot;
ALTER TABLE noetl.snapshot
  DROP COLUMN position,
  DROP COLUMN chain,
  DROP COLUMN code_digest,
  ALTER COLUMN state TYPE bytea USING convert_to(state, 'UTF8');
