-- All archives, oldest first.
SELECT archive_id, partition, tenant_id, organization_id, executions, events, byte_length, manifest::text AS manifest,
  detached_table, archived_at, dropped_at
FROM noetl.archive
ORDER BY archive_id
