"""Runs of playbooks in one process: ports in memory, the real tools, no servers."""
