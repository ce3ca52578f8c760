DROP TABLE noetl.result_data;
