-- Delete what incoming records replace: older states of the same scope.
DELETE FROM projection AS known USING incoming
WHERE known.projection_id = incoming.projection_id AND known.version < incoming.version
  AND known.tenant_id = incoming.tenant_id AND known.organization_id = incoming.organization_id
