DROP TABLE IF EXISTS noetl.trigger_ledger, noetl.trigger_key, noetl.credential;
