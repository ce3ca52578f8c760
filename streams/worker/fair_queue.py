"""Queue of work items: fair between stages, each within its own concurrency limit."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")
Stage = int | None


class FairQueue(Generic[T]):
    """Round robin over stages, FIFO within a stage."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._queues: OrderedDict[Stage, deque[T]] = OrderedDict()
        self._running: dict[Stage, int] = {}
        self._bounds: dict[Stage, int] = {}
        self._in_flight = 0

    def add(self, one: T, stage: Stage, at_once: int) -> None:
        """Enqueue `one`; at most `at_once` of its stage run at the same time."""
        self._queues.setdefault(stage, deque()).append(one)
        self._bounds[stage] = at_once

    def begin(self) -> T | None:
        """Return the next item that may start, and count it as running."""
        if self._in_flight >= self._slots:
            return None
        for stage, queue in self._queues.items():
            running = self._running.get(stage, 0)
            if running < self._bounds[stage]:
                one = queue.popleft()
                self._running[stage] = running + 1
                self._in_flight += 1
                self._queues.move_to_end(stage)
                if not queue:
                    del self._queues[stage]
                return one
        return None

    def end(self, stage: Stage) -> None:
        """Count one item of `stage` as finished."""
        self._in_flight -= 1
        self._running[stage] -= 1
        if not self._running[stage]:
            del self._running[stage]
            if stage not in self._queues:
                del self._bounds[stage]

    def release_slot(self) -> None:
        """Release the slot of a running item that only waits."""
        self._in_flight -= 1

    def retake_slot(self) -> None:
        """Take the slot back; until others end, more may run than there are slots."""
        self._in_flight += 1

    def clear(self) -> None:
        """Drop the queued items."""
        self._queues.clear()
