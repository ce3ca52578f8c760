"""Garbage collection: expired results, and payload objects without a reference."""
