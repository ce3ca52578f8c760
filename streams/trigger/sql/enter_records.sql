-- Write the ledger's rows.
INSERT INTO noetl.trigger_ledger (
  topic_id, partition, record_offset, reader, topic, tenant_id, organization_id, trigger_key, execution_id, rejected_id)
SELECT * FROM unnest(
  $1::text[], $2::integer[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
  $10::bigint[])
