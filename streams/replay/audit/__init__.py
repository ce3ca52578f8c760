"""Audit of executions: the log folded again, compared with everything that was stored from it."""
