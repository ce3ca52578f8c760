"""Secrets that playbooks name: sealed at rest, opened only for a task that a worker holds."""
