-- How far the log has come with a root.
SELECT tenant_id, organization_id, seq, terminal FROM noetl.root_head WHERE root_id = $1 AND root_type = $2
