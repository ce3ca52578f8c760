"""Playbooks: model, parsing, checks, expressions."""
