-- Register a worker that has no incarnation; no row if it has one by now.
INSERT INTO noetl.worker_life (worker, life) VALUES ($1, $2)
ON CONFLICT (worker) DO NOTHING
RETURNING life
