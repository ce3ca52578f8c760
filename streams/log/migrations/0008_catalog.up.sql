-- A playbook is found by its path in the log itself, so that a trigger finds what was just registered.
-- Few of the log's rows are of a catalog; only those are in here.
CREATE INDEX event_catalog ON noetl.event (tenant_id, organization_id, (meta->>'path'))
  WHERE root_type = 'catalog';
