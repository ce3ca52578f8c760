"""Expiry of copies: with their result, and after a day at the latest."""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import heappop, heappush

LONGEST = timedelta(days=1)
"""Maximum lifetime of a copy: workers are not notified when its result expires."""


def end_of(expires_at: datetime | None, now: datetime, longest: timedelta = LONGEST) -> datetime:
    """Return when a copy made now expires."""
    return now + longest if expires_at is None else min(now + longest, expires_at)


def milliseconds(at: datetime) -> int:
    """Return a time as epoch milliseconds."""
    return int(at.timestamp() * 1000)


class Ends:
    """Expiry times by name, in milliseconds; the latest of a name wins."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}
        self._order: list[tuple[int, str]] = []

    def note(self, name: str, until_ms: int) -> None:
        """Record an expiry time."""
        if until_ms > self._until.get(name, -1):
            self._until[name] = until_ms
            heappush(self._order, (until_ms, name))

    def drop(self, name: str) -> None:
        """Remove a name."""
        self._until.pop(name, None)

    def take_due(self, now_ms: int) -> list[str]:
        """Remove and return the expired names."""
        found = []
        while self._order and self._order[0][0] <= now_ms:
            until, name = heappop(self._order)
            if self._until.get(name) == until:
                del self._until[name]
                found.append(name)
        return found
