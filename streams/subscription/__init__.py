"""Subscriptions: documents that map messages of a topic or webhook to playbooks."""
