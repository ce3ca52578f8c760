"""Work that waits for its turn: fair between stages, each within its own bound."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")
Stage = int | None


class Waiting(Generic[T]):
    """Gives out what may begin, one of each stage in turn, first come first served within."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._queues: OrderedDict[Stage, deque[T]] = OrderedDict()
        self._running: dict[Stage, int] = {}
        self._bounds: dict[Stage, int] = {}
        self._in_flight = 0

    def add(self, one: T, stage: Stage, at_once: int) -> None:
        """Let `one` wait; at most `at_once` of its stage run at the same time."""
        self._queues.setdefault(stage, deque()).append(one)
        self._bounds[stage] = at_once

    def begin(self) -> T | None:
        """Return the next that may begin, which then counts as running."""
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
        """Say that one of `stage` no longer runs."""
        self._in_flight -= 1
        self._running[stage] -= 1
        if not self._running[stage]:
            del self._running[stage]
            if stage not in self._queues:
                del self._bounds[stage]

    def rest(self) -> None:
        """Say that one of those that run only waits from now on, and needs no slot."""
        self._in_flight -= 1

    def resume(self) -> None:
        """Say that it runs again; for a while there may be more at work than slots."""
        self._in_flight += 1

    def clear(self) -> None:
        """Forget what waits."""
        self._queues.clear()
