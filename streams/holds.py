"""Holds of a process: which dependency it waits for, logged once at its begin and its end.

See docs/decisions/0029-hold.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from streams.errors import Unavailable

_log = logging.getLogger(__name__)


class Holds:
    """The dependencies that are away, as far as the calls of one process know.

    Many calls may wait for the same dependency: the first failure begins the hold, the first
    success ends it.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._ended_at: dict[str, float] = {}
        self._waiters: dict[str, set[Waiter]] = {}

    @property
    def away(self) -> frozenset[str]:
        """The dependencies that are away now."""
        return frozenset(self._since)

    @contextmanager
    def waiter(self) -> Iterator[Waiter]:
        """Provide the waiter of one call; a hold ends with its last waiter at the latest."""
        waiter = Waiter(self)
        try:
            yield waiter
        finally:
            waiter.leave()

    def begin(self, waiter: Waiter, error: Unavailable, asked_at: float) -> None:
        """Record that a call which was made at `asked_at` failed."""
        name = error.dependency
        if asked_at < self._ended_at.get(name, float("-inf")):
            return  # it was made before the dependency came back
        self._waiters.setdefault(name, set()).add(waiter)
        if name not in self._since:
            self._since[name] = asked_at
            away_s = asyncio.get_running_loop().time() - asked_at
            _log.warning("%s is away, for %.1f s so far: %s; work is held", name, away_s, error)

    def end(self, waiter: Waiter, name: str, *, is_back: bool) -> None:
        """Record that a call was answered, or that nobody makes it any more."""
        waiters = self._waiters.get(name, set())
        waiters.discard(waiter)
        if name not in self._since or (waiters and not is_back):
            return
        now = asyncio.get_running_loop().time()
        away_s = now - self._since.pop(name)
        if is_back:
            self._ended_at[name] = now
            _log.warning("%s is back after %.1f s; work goes on", name, away_s)
        else:
            _log.warning("%s: nothing waits for it any more, after %.1f s", name, away_s)


class Waiter:
    """One call that is made again while a dependency is away."""

    def __init__(self, holds: Holds) -> None:
        self._holds = holds
        self._names: set[str] = set()

    def failed(self, error: Unavailable, asked_at: float) -> None:
        """Record that the call failed, given the loop's time at which it was made."""
        self._names.add(error.dependency)
        self._holds.begin(self, error, asked_at)

    def answered(self) -> None:
        """Record that the call was answered."""
        self._end(is_back=True)

    def leave(self) -> None:
        """Record that the call is not made again."""
        self._end(is_back=False)

    def _end(self, *, is_back: bool) -> None:
        for name in sorted(self._names):
            self._holds.end(self, name, is_back=is_back)
        self._names.clear()
