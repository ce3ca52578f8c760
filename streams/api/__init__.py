"""The runtime over HTTP."""
