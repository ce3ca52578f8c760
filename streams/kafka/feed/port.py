"""The feed port: batches of records, acknowledged last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
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
    """One Kafka record."""

    topic_partition: TopicPartition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int

    @property
    def address(self) -> str:
        """The record's position, for messages: topic/partition@offset."""
        return f"{self.topic_partition}@{self.offset}"


class Feed(Protocol):
    """Delivers records of committed transactions, in order per partition, at least once.

    After a crash a record is redelivered unless it and everything before it on its partition
    was acknowledged. Acknowledgement may be out of order: the committed position stays below
    the lowest unacknowledged record.
    """

    def acknowledge(self, records: Iterable[Record]) -> None:
        """Mark records as finished."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """The lag of a consumer, and a counter of its progress."""

    behind: int
    progress: int


class Watched(Protocol):
    """A feed whose standing a watchdog can read."""

    def standing(self) -> Standing:
        """Return the offsets between the committed position and the end, and the progress."""
        ...

    async def answers(self, *, within_s: float) -> bool:
        """Return whether the broker responds within this time."""
        ...


Notice = Callable[[frozenset[TopicPartition]], Awaitable[None]]
"""Called before the next batch with assigned or revoked partitions."""


async def no_notice(_: frozenset[TopicPartition]) -> None:
    """Do nothing."""
