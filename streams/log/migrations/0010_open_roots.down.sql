DROP INDEX IF EXISTS noetl.root_head_open;
