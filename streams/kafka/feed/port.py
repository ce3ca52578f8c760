"""What an agent needs from a feed: batches of records, acknowledged last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


@dataclass(frozen=True, slots=True)
class Record:
    """One record as the broker has it."""

    topic_partition: TopicPartition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int

    @property
    def address(self) -> str:
        """The record's place in Kafka, as messages name it: topic/partition@offset."""
        return f"{self.topic_partition}@{self.offset}"


class Feed(Protocol):
    """Delivers what committed transactions wrote, in order per partition, at least once.

    A record is delivered again after a crash unless it and everything before it on its
    partition was acknowledged. Out-of-order acknowledgement is fine: the position is
    committed only below the lowest record that is not.
    """

    async def next_batch(self) -> Mapping[TopicPartition, list[Record]]:
        """Wait for records and return them; empty when an idle moment passed."""
        ...

    def acknowledge(self, records: Iterable[Record]) -> None:
        """Record that these records never need to come again."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """How a reader stands: how far behind, and a count that grows with every progress."""

    behind: int
    progress: int


class Watched(Protocol):
    """A feed whose standing a watchdog can read."""

    def standing(self) -> Standing:
        """Return how many offsets lie between what is committed and the end, and the progress."""
        ...

    async def answers(self, *, within_s: float) -> bool:
        """Return whether the broker answers a question within this time."""
        ...


Notice = Callable[[frozenset[TopicPartition]], Awaitable[None]]
"""Called, before the next batch, with the partitions a reader was assigned or has lost."""


async def no_notice(_: frozenset[TopicPartition]) -> None:
    """Take no notice."""
