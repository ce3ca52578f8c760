"""A work queue in memory, for tests and the simulator: records on memory topics, or a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streams.kafka.names import work_topic
from streams.kafka.work.item import WorkItem

Write = Callable[[str, bytes, bytes], None]
"""Takes topic, key and value of one record."""


class MemoryWorkQueue:
    """Stores published items and writes their records, encoded as on Kafka."""

    def __init__(self, write: Write | None = None) -> None:
        self.published: list[WorkItem] = []
        self._write = write

    async def publish(self, items: Sequence[WorkItem]) -> None:
        """Publish all items."""
        for item in items:
            self.published.append(item)
            if self._write is not None:
                self._write(work_topic(item.pool), str(item.entity_id).encode(), item.encode())
