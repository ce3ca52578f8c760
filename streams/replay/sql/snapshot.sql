-- The newest snapshot of an aggregate at or below a place.
SELECT aggregate_type, aggregate_id, projection, seq, position, chain, tenant_id, organization_id,
  projection_version, code_digest, upcaster_versions, payload_root, encryption_context, state, checksum
FROM noetl.snapshot
WHERE aggregate_type = $1 AND aggregate_id = $2 AND projection = 'all' AND seq <= $3
ORDER BY seq DESC
LIMIT 1
