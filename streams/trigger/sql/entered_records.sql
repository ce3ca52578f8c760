-- What the ledger has for some records.
SELECT l.topic_id, l.partition, l.record_offset, l.reader, l.execution_id, l.rejected_id
FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::text[]) AS r (topic_id, partition, record_offset, reader)
JOIN noetl.trigger_ledger l USING (topic_id, partition, record_offset, reader)
