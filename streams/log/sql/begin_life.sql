-- A worker begins a new life; what it held in an earlier one is nobody's.
INSERT INTO noetl.worker_life (worker, life) VALUES ($1, $2)
ON CONFLICT (worker) DO UPDATE SET life = excluded.life, began_at = clock_timestamp()
