-- The states with these primary keys, as lists of their columns.
SELECT s.execution_id, s.projection, s.version, s.key_digest, s.tenant_id, s.organization_id, s.key_values,
  s.state, s.row_count, s.first_seq, s.last_seq, s.first_position, s.last_position
FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::text[])
  AS wanted (execution_id, projection, version, key_digest)
JOIN noetl.business_state s USING (execution_id, projection, version, key_digest)
