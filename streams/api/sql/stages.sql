-- The stages of an execution, in the order they were opened.
SELECT stage_id, loop_id, kind, step_name, status, frame_policy, total_rows, frames, frames_done, rows_done,
  rows_failed, error, started_at, ended_at
FROM noetl.stage WHERE execution_id = $1 ORDER BY started_at, stage_id
