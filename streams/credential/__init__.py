"""Credentials that playbooks name: sealed at rest, opened for a task that a worker holds."""
