-- How many of the leaving executions are as they were archived.
SELECT count(*) FROM leaving l JOIN noetl.root_head h USING (root_id)
WHERE h.terminal AND h.seq = l.seq AND h.chain = l.chain
