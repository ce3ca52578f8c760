-- Give keys their executions, unless they have one; waits for another who is about to. The
-- caller sorts the keys, so that two who want the same ones never wait for each other.
INSERT INTO noetl.trigger_key (tenant_id, trigger_key, execution_id)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
ON CONFLICT DO NOTHING
