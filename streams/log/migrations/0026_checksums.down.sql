ALTER TABLE noetl.execution DROP COLUMN state_checksum;
