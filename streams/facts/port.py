"""Port of the fact topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from streams.errors import Inconsistent, Unavailable
from streams.kafka.feed.port import TopicPartition


class FactsUnavailable(Unavailable):
    """The fact topics cannot be read or written."""

    dependency = "Kafka"


class WriterFenced(Inconsistent):
    """Another process publishes the facts of this partition: this one must stop."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"facts of {source}: another process publishes them now; exiting for a restart. "
            "Give each process its own NOETL_SHARD_ID"
        )


class FactRecord(NamedTuple):
    """A record of a fact topic; without a value, a tombstone."""

    topic: str
    key: bytes
    value: bytes | None
    timestamp_ms: int | None


class FactWriter(Protocol):
    """Publishes facts, those of one source partition in one transaction."""

    async def write(self, source: TopicPartition, records: Sequence[FactRecord]) -> None:
        """Publish records, all or none; return once they are durable.

        Raises:
            FactsUnavailable: none was published, or all were; publishing again is safe.
            WriterFenced: another process writes the facts of this partition.
        """
        ...
