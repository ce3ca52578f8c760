"""Sink blocks of a playbook: parsing, checking, and the tasks they become."""
