"""The postgres tool: statements, fenced saves, connection pools."""
