DROP INDEX noetl.result_data_by_end;
