CREATE OR REPLACE VIEW noetl.stage_output AS
SELECT execution_id, stage_id, min(tenant_id) AS tenant_id, min(organization_id) AS organization_id,
       min(step_name) AS step_name, schema_digest, max(column_count) AS column_count,
       count(*) AS frames, sum(row_count)::bigint AS row_count, sum(byte_count)::bigint AS byte_count,
       sum(null_count)::bigint AS null_count, count(problem) AS problems
FROM noetl.frame_output
GROUP BY execution_id, stage_id, schema_digest;

-- Only the last output of a frame fits the earlier key.
DELETE FROM noetl.frame_output o USING noetl.frame_output later
WHERE o.frame_id = later.frame_id AND o.last_seq < later.last_seq;
ALTER TABLE noetl.frame_output DROP CONSTRAINT frame_output_pkey, ADD PRIMARY KEY (frame_id);
