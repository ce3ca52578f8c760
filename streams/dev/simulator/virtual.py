"""A deterministic event loop with virtual time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Stuck(Exception):
    """All tasks are blocked: a deadlock."""


class _Leaping(selectors.SelectSelector):
    """Advances virtual time instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("every task waits for another")
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs tasks in an order determined by their delays only."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        """Return virtual seconds."""
        return self._leaping.now


class VirtualClock:
    """The clock of a virtual loop; `skew_s` makes one machine's differ from another's."""

    def __init__(self, loop: VirtualLoop, skew_s: float = 0.0) -> None:
        self._loop, self._skew_s = loop, skew_s

    def now(self) -> datetime:
        """Return the time of day."""
        return EPOCH + timedelta(seconds=self._loop.time() + self._skew_s)

    def monotonic(self) -> float:
        """Return seconds since the start."""
        return self._loop.time()


def run(loop: VirtualLoop, main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end and cancel remaining tasks."""
    try:
        return loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()
