-- The newest place in a root.
SELECT tenant_id, organization_id, seq, chain FROM noetl.root_head WHERE root_id = $1 AND root_type = $2
