"""Names of the topics that belong to this system."""

from __future__ import annotations

NAMESPACE = "noetl."
"""Topics that start with this are ours: one that nobody declared is worth a word."""

EVENTS_PREFIX = "noetl.events."
"""A mirrored topic's name is this and the type of the root whose events it carries."""

WORK_PREFIX = "noetl.work."


def event_topic(root_type: str) -> str:
    """Return the topic that carries the events of this type of root."""
    return EVENTS_PREFIX + root_type


def work_topic(pool: str) -> str:
    """Return the topic that carries the work of a pool."""
    return WORK_PREFIX + pool
