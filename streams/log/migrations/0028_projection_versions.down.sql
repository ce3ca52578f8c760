DROP TABLE noetl.projection_version;
