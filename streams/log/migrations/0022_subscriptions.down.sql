DROP FUNCTION IF EXISTS noetl.credential_for_subscription;
DROP INDEX IF EXISTS noetl.event_subscription;
DROP TABLE IF EXISTS noetl.subscription_key;
DROP INDEX IF EXISTS noetl.trigger_ledger_started;
DELETE FROM noetl.trigger_ledger WHERE reader <> '';
ALTER TABLE noetl.trigger_ledger DROP CONSTRAINT trigger_ledger_pkey;
ALTER TABLE noetl.trigger_ledger ADD PRIMARY KEY (topic_id, partition, record_offset);
ALTER TABLE noetl.trigger_ledger DROP COLUMN IF EXISTS reader;
