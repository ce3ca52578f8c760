-- Everything that a projector writes, before it is folded again from the log.
DELETE FROM noetl.execution;
DELETE FROM noetl.stage;
DELETE FROM noetl.frame;
DELETE FROM noetl.frame_output;
DELETE FROM noetl.command;
DELETE FROM noetl.catalog;
DELETE FROM noetl.result_ref;
DELETE FROM noetl.snapshot;
DELETE FROM noetl.business_state;
DELETE FROM noetl.business_progress;
DELETE FROM noetl.projection_checkpoint WHERE projection = 'seen'
