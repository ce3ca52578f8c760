-- When the oldest execution of each organization began that has not ended.
SELECT h.tenant_id, h.organization_id, min(e.ingest_time AT TIME ZONE 'UTC') AS since
FROM noetl.root_head h
JOIN noetl.event e ON e.root_id = h.root_id AND e.seq = 1
WHERE NOT h.terminal AND h.root_type = 'execution'
GROUP BY h.tenant_id, h.organization_id
