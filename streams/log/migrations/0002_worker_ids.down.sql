DROP FUNCTION IF EXISTS noetl.release_worker_id(integer, text);
DROP FUNCTION IF EXISTS noetl.renew_worker_id(integer, text, integer);
DROP FUNCTION IF EXISTS noetl.claim_worker_id(text, integer);
DROP TABLE IF EXISTS noetl.worker_id;
