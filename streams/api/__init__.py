"""The HTTP API: executions, catalog, results, payloads, and work for outside workers."""
