DROP PUBLICATION IF EXISTS noetl_mirror;
DROP TABLE IF EXISTS noetl.event CASCADE;
DROP TABLE IF EXISTS noetl.root_head;
DROP AGGREGATE IF EXISTS noetl.chain(bytea, bytea);
DROP FUNCTION IF EXISTS noetl.chain_step(bytea, bytea, bytea);
DROP FUNCTION IF EXISTS noetl.ensure_partitions(integer);
DROP FUNCTION IF EXISTS noetl.lowest_id_at(timestamptz);
REVOKE ALL ON SCHEMA noetl FROM noetl_append, noetl_read, noetl_mirror, noetl_project, noetl_collect;
