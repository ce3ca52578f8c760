-- The checksum of an execution's whole state, as of its last_seq: its stages, frames, commands and results included.
ALTER TABLE noetl.execution ADD COLUMN state_checksum text;
