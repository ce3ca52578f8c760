-- The policy of a tenant.
INSERT INTO noetl.retention_policy AS known (tenant_id, keep_days) VALUES ($1, $2)
ON CONFLICT (tenant_id) DO UPDATE SET keep_days = excluded.keep_days, updated_at = now()
