"""Clocks: the system's, and one that tests set."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall-clock and monotonic time.

    Only `now` is comparable between machines; only `monotonic` is safe for durations.
    """

    def now(self) -> datetime:
        """Return the time of day, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never goes backwards."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the time of day, aware and in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since some fixed moment."""
        return time.monotonic()


class SettableClock:
    """A clock that only moves when it is set or advanced."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._monotonic = 0.0
        self.set(now)

    def now(self) -> datetime:
        """Return the time of day, as set."""
        return self._now

    def monotonic(self) -> float:
        """Return the total seconds it was advanced by."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Move both readings forward."""
        if seconds < 0:
            raise ValueError("seconds must not be negative; use set() to turn the clock back")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def set(self, now: datetime) -> None:
        """Set the time of day; the monotonic time does not move."""
        if now.tzinfo is None:
            raise ValueError(f"{now.isoformat()} has no time zone; give it UTC")
        self._now = now.astimezone(UTC)
