"""What a consumer has read of its partitions, and what of it is finished."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from streams.kafka.feed.offsets import Offsets
from streams.kafka.feed.port import Record, TopicPartition


@dataclass(slots=True)
class Reading:
    """An assigned partition of a topic that is read in batches."""

    offsets: Offsets = field(default_factory=Offsets)
    position: int = -1
    committed: int = -1
    is_moving: bool = False
    """Whether its position is being set: it is not read meanwhile."""

    @property
    def committable(self) -> int:
        """The offset to resume at after a crash."""
        return self.offsets.committable(self.position)

    @property
    def is_due(self) -> bool:
        """Whether more can be committed than was."""
        return self.committable > self.committed


class PartitionReadings:
    """The assigned partitions, the batches being handled, and what can be committed."""

    def __init__(self) -> None:
        self.by_partition: dict[TopicPartition, Reading] = {}
        self.progress = 0
        """Records finished since the start."""
        self.is_frozen = False
        """Whether nothing is committed any more: something failed."""
        self.changed = asyncio.Event()
        """Set when there may be something to commit, or room to read more."""
        self._in_hand = 0
        self._hands_empty = asyncio.Event()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin to read these partitions, at their committed offsets."""
        self.by_partition = {one: Reading() for one in partitions}

    def revoke(self) -> frozenset[TopicPartition]:
        """Forget all partitions; return them."""
        lost, self.by_partition = frozenset(self.by_partition), {}
        return lost

    def deliver(
        self,
        partition: TopicPartition,
        expected: Reading | None,
        offsets: Iterable[int],
        position: int,
    ) -> bool:
        """Record what a fetch returned; False if the partition was lost or moved since."""
        reading = self.by_partition.get(partition)
        if reading is None or reading is not expected:
            return False
        for offset in offsets:
            reading.offsets.deliver(offset)
        reading.position = position
        if reading.is_due:
            self.changed.set()
        return True

    def acknowledge(self, records: Iterable[Record]) -> None:
        """Mark records as finished; those of lost partitions are ignored."""
        for record in records:
            reading = self.by_partition.get(record.topic_partition)
            if reading is not None and reading.offsets.finish(record.offset):
                self.progress += 1
        self.changed.set()

    def due(self) -> dict[TopicPartition, tuple[Reading, int]]:
        """Return the offsets to commit: what changed since the last commit."""
        if self.is_frozen:
            return {}
        return {
            one: (reading, reading.committable)
            for one, reading in self.by_partition.items()
            if reading.is_due
        }

    @property
    def committed(self) -> Mapping[TopicPartition, int]:
        """The committed offset of each partition that has one."""
        return {
            one: reading.committed
            for one, reading in self.by_partition.items()
            if reading.committed >= 0
        }

    def freeze(self) -> None:
        """Commit nothing from now on."""
        self.is_frozen = True
        self._hands_empty.set()

    def begin(self) -> None:
        """Count a batch as being handled."""
        self._in_hand += 1
        self._hands_empty.clear()

    def end(self) -> None:
        """Count it as handled."""
        self._in_hand -= 1
        if not self._in_hand:
            self._hands_empty.set()

    async def hands_empty(self) -> None:
        """Wait until no batch is being handled, or it does not matter any more."""
        while self._in_hand and not self.is_frozen:
            await self._hands_empty.wait()
