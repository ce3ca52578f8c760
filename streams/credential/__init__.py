"""Credentials of playbooks: encrypted at rest, decrypted for a claimed task."""
