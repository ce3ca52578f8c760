"""The catalog: playbooks and their versions, stored as events."""
