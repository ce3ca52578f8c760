-- The row of an execution.
SELECT * FROM noetl.execution WHERE execution_id = $1
