-- A planner that takes over asks which roots have not ended; most have. Appends change seq and
-- chain only, so their updates of the head stay heap-only.
CREATE INDEX root_head_open ON noetl.root_head (root_type, root_id) WHERE NOT terminal;
