"""How far a projector is behind its partitions, in records and seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping

from streams.clock import Clock
from streams.kafka.feed.port import Record, TopicPartition
from streams.metrics.declared import PROJECTION_LAG_RECORDS, PROJECTION_LAG_SECONDS
from streams.metrics.metric import Sample

Batch = Mapping[TopicPartition, list[Record]]


class ProjectionLag:
    """The lag of one shard; `behind` returns that in records."""

    def __init__(self, shard: str, clock: Clock, behind: Callable[[], int]) -> None:
        self._shard, self._clock, self._behind = shard, clock, behind
        self._oldest_at: float | None = None
        self._last = 0.0

    def watched(
        self, handle: Callable[[Batch], Awaitable[None]]
    ) -> Callable[[Batch], Awaitable[None]]:
        """Return `handle` with its batches observed."""

        async def observed(batch: Batch) -> None:
            # Records of a partition are in the order of their timestamps.
            firsts = [records[0].timestamp_ms for records in batch.values() if records]
            self._oldest_at = min(firsts) / 1000 if firsts else None
            await handle(batch)
            self._last, self._oldest_at = self.seconds, None

        return observed

    @property
    def seconds(self) -> float:
        """The age of the oldest record in hand, else that of the last batch; 0 without a lag."""
        if self._oldest_at is not None:
            return max(self._clock.now().timestamp() - self._oldest_at, 0.0)
        return self._last if self._behind() else 0.0

    def samples(self) -> Iterator[Sample]:
        """Yield the lag."""
        yield Sample(PROJECTION_LAG_RECORDS, self._behind(), (self._shard,))
        yield Sample(PROJECTION_LAG_SECONDS, self.seconds, (self._shard,))
