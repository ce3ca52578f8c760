-- Frames of a stage that wait for a worker.
SELECT frame_id, ordinal FROM noetl.frame WHERE stage_id = $1 AND status = 'PENDING' ORDER BY ordinal LIMIT $2
