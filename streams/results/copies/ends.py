"""When copies end: with their result's time, and after a day at the latest."""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import heappop, heappush

LONGEST = timedelta(days=1)
"""How long a copy is kept, however long its result lives: nobody tells a worker of its end."""


def end_of(expires_at: datetime | None, now: datetime, longest: timedelta = LONGEST) -> datetime:
    """Return when a copy ends that is made now."""
    return now + longest if expires_at is None else min(now + longest, expires_at)


def milliseconds(at: datetime) -> int:
    """Return a time as a whole number."""
    return int(at.timestamp() * 1000)


class Ends:
    """The ends of names, in milliseconds; of several ends of one name the latest counts."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}
        self._order: list[tuple[int, str]] = []

    def note(self, name: str, until_ms: int) -> None:
        """Remember an end."""
        if until_ms > self._until.get(name, -1):
            self._until[name] = until_ms
            heappush(self._order, (until_ms, name))

    def drop(self, name: str) -> None:
        """Forget a name."""
        self._until.pop(name, None)

    def take_due(self, now_ms: int) -> list[str]:
        """Return the names whose end has come, and forget them."""
        found = []
        while self._order and self._order[0][0] <= now_ms:
            until, name = heappop(self._order)
            if self._until.get(name) == until:
                del self._until[name]
                found.append(name)
        return found
