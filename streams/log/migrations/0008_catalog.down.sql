DROP INDEX IF EXISTS noetl.event_catalog;
