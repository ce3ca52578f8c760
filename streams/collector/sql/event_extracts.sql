-- Events that name payloads, or begin or end a result, root by root; $1: of these roots only;
-- $2: the types of events that end a root.
SELECT e.root_id, e.seq, e.event_id, e.event_type, e.schema_version, e.node_name,
       e.meta::text AS meta,
       e.payload_ref->>'sha256' AS own,
       concat_ws(' ', e.payload_ref::text, n.texts) AS texts,
       h.root_type, h.tenant_id, h.organization_id,
       CASE WHEN h.terminal THEN ending.at AT TIME ZONE 'UTC' END AS ended_at
FROM noetl.event e
JOIN noetl.root_head h ON h.root_id = e.root_id
LEFT JOIN (
  SELECT x.root_id, max(x.ingest_time) AS at FROM noetl.event x
  WHERE ($1::bigint[] IS NULL OR x.root_id = ANY ($1)) AND x.event_type = ANY ($2::text[])
  GROUP BY x.root_id
) ending ON ending.root_id = e.root_id
CROSS JOIN LATERAL (
  SELECT concat_ws(' ',
    CASE WHEN strpos(e.context::text, 'sha256') > 0 THEN e.context::text END,
    CASE WHEN strpos(e.result::text, 'sha256') > 0 THEN e.result::text END,
    CASE WHEN strpos(e.current_item::text, 'sha256') > 0 THEN e.current_item::text END,
    CASE WHEN strpos(e.meta::text, 'sha256') > 0 THEN e.meta::text END,
    CASE WHEN strpos(e.error, 'sha256') > 0 THEN e.error END) AS texts
) n
WHERE ($1::bigint[] IS NULL OR e.root_id = ANY ($1))
  AND (e.payload_ref IS NOT NULL
    OR e.event_type IN ('result.stored', 'result.expired', 'step.exit')
    OR n.texts <> '')
ORDER BY e.root_id, e.seq
