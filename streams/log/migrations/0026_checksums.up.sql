-- The checksum of an execution's whole state, as of its last_seq: its stages, frames, commands and results included.
ALTER TABLE noetl.execution ADD COLUMN state_checksum text;
-- What a snapshot was made with, and where: its chain is compared with the log's before it is used.
DELETE FROM noetl.snapshot;
ALTER TABLE noetl.snapshot
  ADD COLUMN position bigint NOT NULL,
  ADD COLUMN chain text NOT NULL,
  ADD COLUMN code_digest text NOT NULL,
  ALTER COLUMN state TYPE text USING encode(state, 'escape');
-- A cut across the log ends at the last position that was given out.
GRANT SELECT ON SEQUENCE noetl.event_position_seq TO noetl_read;
