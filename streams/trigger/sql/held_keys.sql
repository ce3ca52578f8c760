-- Which execution each key has.
SELECT k.tenant_id, k.trigger_key, k.execution_id
FROM unnest($1::text[], $2::text[]) AS w (tenant_id, trigger_key)
JOIN noetl.trigger_key k USING (tenant_id, trigger_key)
