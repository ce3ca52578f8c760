-- The executions of an archive after one, in order of their ids.
SELECT r.root_id, a.tenant_id, a.organization_id, r.parent_execution_id, r.seq, r.chain, r.pieces::text AS pieces
FROM noetl.archived_root r JOIN noetl.archive a USING (archive_id)
WHERE r.archive_id = $1 AND r.root_id > $2
ORDER BY r.root_id
LIMIT $3
