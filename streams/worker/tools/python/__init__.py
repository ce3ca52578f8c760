"""The python tool: author code in child processes."""
