-- Which of the payloads that a payload names it names for certain: those that are gone are reported.
ALTER TABLE noetl.payload_link ADD COLUMN sure text[] NOT NULL DEFAULT '{}';
-- What was kept before was not compared with the payloads' digests; it is found again by reading.
DELETE FROM noetl.payload_link;
-- The collector asks every minute for results that may have come to their end.
CREATE INDEX result_ref_ending ON noetl.result_ref (execution_id)
  WHERE expired_at IS NULL AND scope <> 'permanent';
-- When the objects were last swept, so that a collector that is started again need not do it anew.
ALTER TABLE noetl.payload_owner ADD COLUMN swept_at timestamptz;
GRANT UPDATE (swept_at) ON noetl.payload_owner TO noetl_collect;
