DROP FUNCTION noetl.schema_id_for(text, text, text);
DROP TABLE noetl.schema_subject;
DROP TABLE noetl.schema;
