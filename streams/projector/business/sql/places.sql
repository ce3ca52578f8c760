-- How far two versions of a projection were folded: $4, the one that serves, and $5, the other one.
-- `behind` are executions of which the other one has less, `apart` those of which they have not the same.
SELECT count(served.execution_id) AS executions,
  coalesce(max(served.last_position), 0) AS position,
  count(*) FILTER (
    WHERE served.last_seq > coalesce(other.last_seq, 0)
  ) AS behind,
  count(*) FILTER (WHERE served.last_seq IS DISTINCT FROM other.last_seq) AS apart,
  min(coalesce(served.execution_id, other.execution_id)) FILTER (
    WHERE served.last_seq IS DISTINCT FROM other.last_seq
  ) AS first_apart
FROM (
  SELECT execution_id, last_seq, last_position FROM noetl.business_progress
  WHERE tenant_id = $1 AND organization_id = $2 AND projection = $3 AND version = $4
) AS served
FULL JOIN (
  SELECT execution_id, last_seq FROM noetl.business_progress
  WHERE tenant_id = $1 AND organization_id = $2 AND projection = $3 AND version = $5
) AS other USING (execution_id)
