"""Caches in front of the payload store: process memory, shared memory, the node's disk."""
