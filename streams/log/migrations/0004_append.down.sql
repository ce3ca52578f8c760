DROP FUNCTION IF EXISTS noetl.append(noetl.new_event[]);
DROP FUNCTION IF EXISTS noetl.append_batch(noetl.new_event[]);
DROP FUNCTION IF EXISTS noetl.insert_events(noetl.new_event[]);
DROP TYPE IF EXISTS noetl.appended;
DROP TYPE IF EXISTS noetl.new_event;
