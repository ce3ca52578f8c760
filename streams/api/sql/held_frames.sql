-- How many frames of a stage a worker holds.
SELECT count(*) FROM noetl.frame WHERE stage_id = $1 AND status = 'CLAIMED' AND owner_worker = $2
