"""Clocks: the system's, and one that tests set."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time of day, and how much time passes.

    Only `now` can be compared between machines; only `monotonic` is safe for measuring
    how long something lasts, because nobody can turn it back.
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
    """A clock that stands still until it is told otherwise."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._monotonic = 0.0
        self.set(now)

    def now(self) -> datetime:
        """Return the time of day it was set to."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds it was advanced by, in all."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass, as it does: both readings move."""
        if seconds < 0:
            raise ValueError("time does not pass backwards; use set() to turn the clock back")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def set(self, now: datetime) -> None:
        """Turn the time of day to `now`; no time passes."""
        if now.tzinfo is None:
            raise ValueError(f"{now.isoformat()} has no time zone; give it UTC")
        self._now = now.astimezone(UTC)
