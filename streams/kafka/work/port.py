"""What the planner needs from a work queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from streams.kafka.work.item import WorkItem


class WorkQueue(Protocol):
    """Hands work items to the workers of their pools, at least once each."""

    async def publish(self, items: Sequence[WorkItem]) -> None:
        """Publish all items and return once they are durable.

        Raises:
            Unavailable: the broker cannot be reached; publishing again is safe.
        """
        ...
