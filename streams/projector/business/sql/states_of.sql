-- All states of one version of a projection of an execution.
SELECT execution_id, projection, version, key_digest, tenant_id, organization_id, key_values, state, row_count,
  first_seq, last_seq, first_position, last_position
FROM noetl.business_state
WHERE execution_id = $1 AND projection = $2 AND version = $3
