"""The work queue port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from streams.kafka.work.item import WorkItem


class WorkQueue(Protocol):
    """Publishes work items to the workers of their pools, at least once each."""

    async def publish(self, items: Sequence[WorkItem]) -> None:
        """Publish all items and return once they are durable.

        Raises:
            Unavailable: the broker cannot be reached; publishing again is safe.
        """
        ...
