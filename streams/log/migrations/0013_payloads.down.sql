DROP TABLE IF EXISTS noetl.payload_link, noetl.payload_owner;
