"""What authors registered: playbooks and their versions, read from the log."""
