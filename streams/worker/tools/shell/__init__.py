"""The shell tool: author commands in process groups that end with the worker."""
