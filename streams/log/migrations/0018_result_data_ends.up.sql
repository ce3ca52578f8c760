-- Workers remove the rows whose time is over, every few minutes.
CREATE INDEX result_data_by_end ON noetl.result_data (expires_at) WHERE expires_at IS NOT NULL;
