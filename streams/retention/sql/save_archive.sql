-- An archive; its detached table is named for its partition and for the first archive of the same run.
INSERT INTO noetl.archive (partition, tenant_id, organization_id, executions, events, byte_length, manifest, objects, detached_table)
VALUES ($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8, '')
RETURNING archive_id
