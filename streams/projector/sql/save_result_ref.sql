-- Results that live outside their events, as one batch; a row that is newer in the table stays.
INSERT INTO noetl.result_ref (
  ref_id, ref, execution_id, tenant_id, organization_id, parent_ref_id, step_name, task_label, store_tier,
  physical_uri, scope, content_type, byte_length, sha256, compression, extracted, preview, expires_at,
  created_at, last_seq
)
SELECT
  ref_id, ref, execution_id, tenant_id, organization_id, parent_ref_id, step_name, task_label, store_tier,
  physical_uri, scope, content_type, byte_length, sha256, compression, extracted, preview, expires_at,
  created_at, last_seq
FROM jsonb_populate_recordset(NULL::noetl.result_ref, $1::jsonb)
ON CONFLICT (ref_id) DO UPDATE SET (
  ref, execution_id, tenant_id, organization_id, parent_ref_id, step_name, task_label, store_tier,
  physical_uri, scope, content_type, byte_length, sha256, compression, extracted, preview, expires_at,
  created_at, last_seq
) = ROW (
  excluded.ref, excluded.execution_id, excluded.tenant_id, excluded.organization_id, excluded.parent_ref_id,
  excluded.step_name, excluded.task_label, excluded.store_tier, excluded.physical_uri, excluded.scope,
  excluded.content_type, excluded.byte_length, excluded.sha256, excluded.compression, excluded.extracted,
  excluded.preview, excluded.expires_at, excluded.created_at, excluded.last_seq
)
WHERE excluded.last_seq > result_ref.last_seq
