DROP TABLE noetl.business_state, noetl.business_progress;
