-- Rows of commands by their ids.
SELECT * FROM noetl.command WHERE command_id = ANY($1::bigint[])
