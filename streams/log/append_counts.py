"""Counts of appended events, by type, and of leases that the reaper ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from time import monotonic

from streams.events.model import NewEvent
from streams.events.types import FrameLeaseExpired
from streams.log.port import AppendOutcome, Receipt
from streams.metrics.declared import EVENTS_APPENDED, REAPER_RATE, REAPER_REPUBLISHED
from streams.metrics.metric import Sample
from streams.metrics.recent import RecentValues


class AppendCounts:
    """What a process has appended to the log."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._by_type: Counter[str] = Counter()
        self._reaped = RecentValues(clock)

    def add(self, batch: Sequence[NewEvent], receipt: Receipt) -> None:
        """Count the events of a batch that are new in the log."""
        for event, stored in zip(batch, receipt.events, strict=False):
            if stored.outcome is AppendOutcome.APPENDED:
                self._by_type[event.type] += 1
                if event.type == FrameLeaseExpired.TYPE:
                    self._reaped.add()

    def samples(self) -> Iterator[Sample]:
        """Yield the events by type."""
        for event_type, count in self._by_type.items():
            yield Sample(EVENTS_APPENDED, count, (event_type,))

    def reaper_samples(self) -> Iterator[Sample]:
        """Yield the frames that a planner dispatched again; each such event is one."""
        yield Sample(REAPER_REPUBLISHED, self._by_type[FrameLeaseExpired.TYPE])
        yield Sample(REAPER_RATE, self._reaped.rate)
