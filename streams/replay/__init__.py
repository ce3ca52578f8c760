"""Replay: what was true at a moment, from the log and the payloads alone."""
