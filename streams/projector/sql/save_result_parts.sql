-- The frames' payloads that a loop's manifest lists, under the manifest; $1 holds the manifests.
INSERT INTO noetl.result_ref (
  ref_id, ref, execution_id, tenant_id, organization_id, parent_ref_id, step_name, task_label, store_tier,
  physical_uri, scope, content_type, byte_length, sha256, created_at, last_seq
)
SELECT
  frame.frame_id,
  'noetl://execution/' || frame.execution_id || '/step/' || frame.step_name || '/task/frame/' || frame.frame_id,
  frame.execution_id, frame.tenant_id, frame.organization_id, manifest.ref_id, frame.step_name, 'frame',
  manifest.store_tier, frame.output_ref->>'uri', manifest.scope, frame.output_ref->>'media_type',
  (frame.output_ref->>'byte_length')::bigint, frame.output_ref->>'sha256', frame.completed_at, frame.last_seq
FROM jsonb_populate_recordset(NULL::noetl.result_ref, $1::jsonb) AS manifest
JOIN noetl.stage ON stage.execution_id = manifest.execution_id AND stage.loop_id = manifest.ref_id
JOIN noetl.frame ON frame.execution_id = manifest.execution_id AND frame.stage_id = stage.stage_id
WHERE manifest.content_type = 'application/vnd.noetl.manifest+json'
  AND frame.output_ref IS NOT NULL AND frame.completed_at IS NOT NULL
ON CONFLICT (ref_id) DO NOTHING
