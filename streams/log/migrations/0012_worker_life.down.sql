DROP TABLE IF EXISTS noetl.worker_life;
