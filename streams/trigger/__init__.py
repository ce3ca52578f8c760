"""Triggers: records and requests that start executions, and their ledger."""
