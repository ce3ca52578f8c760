DROP VIEW IF EXISTS noetl.loop_event;
DROP VIEW IF EXISTS noetl.event_log;
DROP VIEW IF EXISTS noetl.frame_as_shard;
