"""Records on their way to an agent: one event of its stream."""

from __future__ import annotations

from typing import Any

import faust
from faust.types import AppT, EventT
from mode import get_logger

from streams.kafka.feed.port import Record, TopicPartition

FAUST_LOG = get_logger("faust")
"""Logger of Faust's services; by default each class has one named after its module."""


class TopicDelivery:
    """Records of one topic; it takes in further fetches until its agent takes the first ones.

    So at most one event of a topic waits for its agent, however slow the agent is, and what
    gathered meanwhile is one batch.
    """

    __slots__ = ("__weakref__", "_records", "is_open")

    def __init__(self) -> None:
        self._records: dict[TopicPartition, list[Record]] = {}
        self.is_open = True
        """Whether more records may be added."""

    def add(self, partition: TopicPartition, records: list[Record]) -> None:
        """Add records that follow those already in it."""
        self._records.setdefault(partition, []).extend(records)

    def take(self, limit: int) -> dict[TopicPartition, list[Record]]:
        """Remove and return up to `limit` records; empty when none is left."""
        self.is_open = False
        batch: dict[TopicPartition, list[Record]] = {}
        while self._records and limit > 0:
            partition, records = next(iter(self._records.items()))
            batch[partition], rest = records[:limit], records[limit:]
            limit -= len(batch[partition])
            if rest:
                self._records[partition] = rest
            else:
                del self._records[partition]
        return batch

    def discard(self, partition: TopicPartition) -> None:
        """Forget the records of a partition whose position was set."""
        self._records.pop(partition, None)

    def drop(self) -> None:
        """Forget the records: their partitions were revoked."""
        self.is_open = False
        self._records.clear()


class Batches(faust.Schema[Any, Any]):
    """Schema of a topic whose events are deliveries; records are not decoded."""

    def compile(self, app: AppT, **_: Any) -> Any:
        """Return a decoder that passes on the delivery."""
        create_event = app.create_event

        async def decode(message: Any, *, propagate: bool = False) -> EventT[Any]:
            return create_event(None, message.value, None, message)

        return decode
