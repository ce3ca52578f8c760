"""The two-minute tour: a playbook run on the real parts, and checked."""
