"""A feed in memory, for tests and the simulator: same contract, one process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streams.kafka.feed.offsets import Offsets
from streams.kafka.feed.port import Notice, Record, Standing, TopicPartition, no_notice


@dataclass(slots=True)
class MemoryTopics:
    """Topics with their partitions and each group's committed offsets.

    As in Kafka, a transaction's marker has an offset, and so have the records of an aborted one.
    """

    partitions: int = 1
    logs: dict[TopicPartition, list[Record | None]] = field(default_factory=dict)
    committed: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    written: asyncio.Event = field(default_factory=asyncio.Event)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic."""
        return [TopicPartition(topic, number) for number in range(self.partitions)]

    def write(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        key: bytes | None = None,
        partition: int = 0,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        timestamp_ms: int = 0,
        transaction: str = "",
    ) -> None:
        """Append records; `transaction` is "" for none, `committed` or `aborted`."""
        written = TopicPartition(topic, partition)
        log = self.logs.setdefault(written, [])
        for value in values:
            record = Record(written, len(log), key, value, headers, timestamp_ms)
            log.append(None if transaction == "aborted" else record)
        if transaction:
            log.append(None)
        self.written.set()

    def lag(self, group: str, topic: str) -> int:
        """Return the offsets between a group's committed position and the end."""
        partitions = self.partitions_of(topic)
        ends = sum(len(self.logs.get(partition, [])) for partition in partitions)
        return ends - sum(self.committed.get((group, partition), 0) for partition in partitions)


class MemoryFeed:
    """Reads all partitions of its topics for one group; a new instance simulates a restart."""

    def __init__(
        self,
        topics: MemoryTopics,
        names: Iterable[str],
        *,
        group: str,
        on_assigned: Notice = no_notice,
        max_span: int = 4000,
        max_records: int = 500,
        idle_s: float = 0.0,
    ) -> None:
        self._topics, self._group = topics, group
        self._max_span, self._max_records, self._idle_s = max_span, max_records, idle_s
        self._offsets = {
            partition: Offsets() for name in names for partition in topics.partitions_of(name)
        }
        self._positions = {
            partition: topics.committed.get((group, partition), 0) for partition in self.partitions
        }
        self._on_assigned: Notice | None = on_assigned
        self._progress = 0

    async def next_batch(self) -> Mapping[TopicPartition, list[Record]]:
        """Return available records; empty after the idle timeout."""
        if self._on_assigned is not None:
            await self._on_assigned(self.partitions)
            self._on_assigned = None
        self._topics.written.clear()
        if batch := self._take():
            return batch
        if self._idle_s:
            try:
                # Not wait_for: on Python 3.11 it may lose a cancellation.
                async with asyncio.timeout(self._idle_s):
                    await self._topics.written.wait()
            except TimeoutError:
                return {}
        else:
            await asyncio.sleep(0)
        return self._take()

    def acknowledge(self, records: Iterable[Record]) -> None:
        """Mark records as finished."""
        for record in records:
            if self._offsets[record.topic_partition].finish(record.offset):
                self._progress += 1
        self._commit()

    def standing(self) -> Standing:
        """Return the offsets between the committed position and the end, and the progress."""
        names = {partition.topic for partition in self._offsets}
        return Standing(sum(self._topics.lag(self._group, name) for name in names), self._progress)

    async def answers(self, *, within_s: float) -> bool:
        """Return True."""
        return True

    async def seek(self, partition: TopicPartition, offset: int | None) -> None:
        """Continue a partition at an offset, None: at its first."""
        self._offsets[partition] = Offsets()
        self._positions[partition] = offset or 0

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        return len(self._topics.partitions_of(topic))

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._offsets)

    def _take(self) -> dict[TopicPartition, list[Record]]:
        batch: dict[TopicPartition, list[Record]] = {}
        remaining = self._max_records
        for partition, offsets in self._offsets.items():
            log, at = self._topics.logs.get(partition, []), self._positions[partition]
            while at < len(log) and remaining and offsets.span < self._max_span:
                if (record := log[at]) is not None:
                    offsets.deliver(record.offset)
                    batch.setdefault(partition, []).append(record)
                    remaining -= 1
                at += 1
            self._positions[partition] = at
        self._commit()
        return batch

    def _commit(self) -> None:
        for partition, offsets in self._offsets.items():
            offset = offsets.committable(self._positions[partition])
            self._topics.committed[self._group, partition] = offset
