-- A worker begins a new incarnation; leases of its earlier ones are void. No row if the newest
-- one is no longer $2: the request is late, or another process of the worker was faster.
UPDATE noetl.worker_life SET life = $3, began_at = clock_timestamp()
WHERE worker = $1 AND life = $2
RETURNING life
