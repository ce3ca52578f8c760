-- What archives need: their own objects, and the payloads of the executions in them. Objects of an archive name
-- what expired in its executions, and do not keep it. Numbers of archives are made negative: ids of roots are not.
SELECT -a.archive_id AS root_id, 'archive' AS root_type, a.tenant_id, a.organization_id,
  NULL::timestamptz AS ended_at, a.objects AS payloads, coalesce(e.expired, '') AS expired
FROM noetl.archive a
CROSS JOIN LATERAL (
  SELECT string_agg(r.expired, ' ') AS expired FROM noetl.archived_root r
  WHERE r.archive_id = a.archive_id AND r.expired <> ''
) e
UNION ALL
SELECT r.root_id, 'archive', a.tenant_id, a.organization_id, NULL::timestamptz, r.payloads, r.expired
FROM noetl.archived_root r JOIN noetl.archive a USING (archive_id)
WHERE r.payloads <> '' OR r.expired <> ''
