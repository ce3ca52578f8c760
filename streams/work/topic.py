"""The name of a pool's topic."""

from __future__ import annotations

WORK_PREFIX = "noetl.work."


def work_topic(pool: str) -> str:
    """Name the topic that carries the work of a pool."""
    return WORK_PREFIX + pool
