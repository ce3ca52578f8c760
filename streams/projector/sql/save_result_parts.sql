-- The frames' payloads that a loop's manifest lists, under the manifest; $1 holds the manifests.
-- All payloads of a tenant and organization are in one folder, and a digest has 64 characters.
INSERT INTO noetl.result_ref (
  ref_id, ref, execution_id, tenant_id, organization_id, parent_ref_id, step_name, task_label, store_tier,
  physical_uri, scope, content_type, byte_length, sha256, created_at, last_seq
)
WITH manifest AS (
  SELECT *
  FROM jsonb_populate_recordset(NULL::noetl.result_ref, $1::jsonb)
  WHERE content_type = 'application/vnd.noetl.manifest+json'
)
SELECT
  frame.frame_id,
  'noetl://execution/' || frame.execution_id || '/step/' || frame.step_name || '/task/frame/' || frame.frame_id,
  frame.execution_id, frame.tenant_id, frame.organization_id, manifest.ref_id, frame.step_name, 'frame',
  manifest.store_tier, left(manifest.physical_uri, -64) || (frame.output_ref->>'sha256'), manifest.scope, frame.output_ref->>'media_type',
  (frame.output_ref->>'byte_length')::bigint, frame.output_ref->>'sha256', frame.completed_at, frame.last_seq
FROM manifest
JOIN noetl.stage ON stage.execution_id = manifest.execution_id AND stage.loop_id = manifest.ref_id
JOIN noetl.frame ON frame.execution_id = manifest.execution_id AND frame.stage_id = stage.stage_id
WHERE frame.output_ref IS NOT NULL AND frame.completed_at IS NOT NULL
UNION ALL
-- The outputs of checkpoints; a frame's own row has that of its commit.
SELECT
  beat.event_id,
  'noetl://execution/' || manifest.execution_id || '/step/' || beat.node_name || '/task/checkpoint/' || beat.event_id,
  manifest.execution_id, beat.tenant_id, beat.organization_id, manifest.ref_id, beat.node_name, 'checkpoint',
  manifest.store_tier, left(manifest.physical_uri, -64) || (beat.payload_ref->>'sha256'), manifest.scope, beat.payload_ref->>'media_type',
  (beat.payload_ref->>'byte_length')::bigint, beat.payload_ref->>'sha256', beat.ingest_time, beat.seq
FROM manifest
JOIN noetl.stage ON stage.execution_id = manifest.execution_id AND stage.loop_id = manifest.ref_id
JOIN noetl.event AS beat ON beat.root_id = manifest.execution_id AND beat.event_type = 'frame.heartbeat'
  AND beat.meta->>'stage_id' = stage.stage_id::text AND beat.payload_ref IS NOT NULL
ON CONFLICT (ref_id) DO NOTHING
