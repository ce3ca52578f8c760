ALTER TABLE noetl.payload_owner DROP COLUMN IF EXISTS swept_at;
DROP INDEX IF EXISTS noetl.result_ref_ending;
ALTER TABLE noetl.payload_link DROP COLUMN IF EXISTS sure;
