-- One command.
SELECT command_id, execution_id, tenant_id, organization_id, step_name, status FROM noetl.command WHERE command_id = $1
