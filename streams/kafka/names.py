"""Names of the system's topics."""

from __future__ import annotations

NAMESPACE = "noetl."
"""Prefix of the system's topics; an undeclared one is reported."""

EVENTS_PREFIX = "noetl.events."
"""Prefix of mirrored topics, followed by the type of root."""

WORK_PREFIX = "noetl.work."


def event_topic(root_type: str) -> str:
    """Return the topic of a root type's events."""
    return EVENTS_PREFIX + root_type


def work_topic(pool: str) -> str:
    """Return the topic of a pool's work."""
    return WORK_PREFIX + pool
