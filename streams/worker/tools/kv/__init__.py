"""The nats tool: its key-value operations over a table of the log's database."""
