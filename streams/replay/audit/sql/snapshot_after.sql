-- The first snapshot of an execution after a place.
SELECT aggregate_type, aggregate_id, projection, seq, position, chain, tenant_id, organization_id,
  projection_version, code_digest, upcaster_versions, payload_root, encryption_context, state, checksum
FROM noetl.snapshot
WHERE aggregate_type = 'execution' AND aggregate_id = $1 AND projection = 'all' AND seq > $2
ORDER BY seq
LIMIT 1
