"""The demo: a playbook run on a real stack, and checked."""
