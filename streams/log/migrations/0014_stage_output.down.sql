DROP VIEW IF EXISTS noetl.stage_output;
DROP TABLE IF EXISTS noetl.frame_output;
