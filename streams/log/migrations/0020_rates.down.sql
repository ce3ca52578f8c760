DROP TABLE IF EXISTS noetl.rate_bucket;
