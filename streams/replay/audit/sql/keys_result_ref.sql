-- The ids of an execution's results, a page at a time.
-- Rows for the parts of a manifest are derived from other rows, not folded.
SELECT ref_id AS key, last_seq FROM noetl.result_ref
WHERE execution_id = $1 AND last_seq <= $2 AND ref_id > $3
  AND NOT (parent_ref_id IS NOT NULL AND task_label IN ('frame', 'checkpoint'))
ORDER BY ref_id
LIMIT $4
