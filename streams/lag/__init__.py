"""How far behind: lag of consumer groups, and of each hop from the log to its readers."""
