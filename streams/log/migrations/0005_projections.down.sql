DROP TABLE IF EXISTS noetl.execution, noetl.stage, noetl.frame, noetl.command, noetl.result_ref,
  noetl.projection_checkpoint, noetl.execution_shard, noetl.checkpoint, noetl.snapshot, noetl.catalog;
