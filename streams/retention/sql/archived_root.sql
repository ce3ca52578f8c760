-- Where the events of an archived execution are.
SELECT r.root_id, a.tenant_id, a.organization_id, r.parent_execution_id, r.seq, r.chain, r.pieces::text AS pieces
FROM noetl.archived_root r JOIN noetl.archive a USING (archive_id)
WHERE r.root_id = $1
