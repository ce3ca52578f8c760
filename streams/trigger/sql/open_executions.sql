-- How many executions of a reader have not ended, up to a limit.
SELECT count(*) FROM (
  SELECT 1 FROM noetl.root_head h
  WHERE h.root_type = 'execution' AND NOT h.terminal AND EXISTS (
    SELECT 1 FROM noetl.trigger_ledger l
    WHERE l.execution_id = h.root_id AND l.reader <> '' AND l.reader = $1)
  LIMIT $2) AS found
