-- Snapshots, as one batch; the same one made again changes nothing, one of other code replaces it.
INSERT INTO noetl.snapshot (
  aggregate_type, aggregate_id, projection, seq, position, chain, tenant_id, organization_id, projection_version,
  code_digest, upcaster_versions, payload_root, encryption_context, state, checksum
)
SELECT
  aggregate_type, aggregate_id, projection, seq, position, chain, tenant_id, organization_id, projection_version,
  code_digest, upcaster_versions, payload_root, encryption_context, state, checksum
FROM jsonb_populate_recordset(NULL::noetl.snapshot, $1::jsonb)
ON CONFLICT (aggregate_type, aggregate_id, projection, seq) DO UPDATE SET (
  position, chain, projection_version, code_digest, upcaster_versions, payload_root, encryption_context, state,
  checksum, created_at
) = ROW (
  excluded.position, excluded.chain, excluded.projection_version, excluded.code_digest,
  excluded.upcaster_versions, excluded.payload_root, excluded.encryption_context, excluded.state,
  excluded.checksum, now()
)
WHERE (snapshot.code_digest, snapshot.upcaster_versions, snapshot.checksum)
  IS DISTINCT FROM (excluded.code_digest, excluded.upcaster_versions, excluded.checksum)
