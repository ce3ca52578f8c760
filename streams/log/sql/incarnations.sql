-- The newest incarnation of every worker.
SELECT worker, life FROM noetl.worker_life
