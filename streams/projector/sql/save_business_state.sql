-- States of business projections, as one batch; a row that is newer in the table stays.
INSERT INTO noetl.business_state (
  execution_id, projection, version, key_digest, tenant_id, organization_id, key_values, state, row_count,
  first_seq, last_seq, first_position, last_position, checksum
)
SELECT
  execution_id, projection, version, key_digest, tenant_id, organization_id, key_values, state, row_count,
  first_seq, last_seq, first_position, last_position, checksum
FROM jsonb_populate_recordset(NULL::noetl.business_state, $1::jsonb)
ON CONFLICT (execution_id, projection, version, key_digest) DO UPDATE SET (
  state, row_count, first_seq, last_seq, first_position, last_position, checksum
) = ROW (
  excluded.state, excluded.row_count, excluded.first_seq, excluded.last_seq, excluded.first_position,
  excluded.last_position, excluded.checksum
)
WHERE excluded.last_seq > business_state.last_seq
