"""Retention: ended executions leave the log for the payload store, and still replay."""
