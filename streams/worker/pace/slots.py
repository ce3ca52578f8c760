"""Times at which calls under a rate may be made, on this machine's clock. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from streams.log.rate_leases import RateSlice

LATE_S = 0.03
"""How long after its time a slot may be used. Intervals are longer by this much a second, so that
no second has more calls than allowed, however late each of them is."""
_UNSURE_S = 0.005
"""The part of it that is left for the difference of the clocks."""
_DRIFT = 1e-4
_STEP_S = 1.0
"""A larger difference means that the store's clock was set."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `per_second` calls in any second, and `burst - 1` more after a pause."""

    per_second: float
    burst: int = 1

    @property
    def interval_s(self) -> float:
        """The time between two slots."""
        return (1.0 + LATE_S) / self.per_second

    @property
    def behind_s(self) -> float:
        """How far in the past the slots of an idle key begin."""
        return (self.burst - 1) * self.interval_s


@dataclass(slots=True)
class Slots:
    """Leased slots of one key in order, by the monotonic clock."""

    _times: deque[tuple[float, float]] = field(default_factory=deque)
    """When each slot begins and ends."""
    _offset: float | None = None
    """At least the difference of the monotonic clock to the store's."""
    _measured_at: float = 0.0

    def add(self, found: RateSlice, rate: Rate, count: int, answered_at: float) -> None:
        """Add a slice that the store returned; the answer came at `answered_at`."""
        offset = self._measured(answered_at - found.now_at, answered_at)
        lasts_s = LATE_S - _UNSURE_S + rate.behind_s
        for place in range(count):
            begin = found.first_at + place * rate.interval_s + offset
            self._times.append((begin, begin + lasts_s))

    def take(self, now: float) -> bool:
        """Use the first slot that has begun; slots that have ended are dropped."""
        times = self._times
        while times and times[0][1] < now:
            times.popleft()
        if times and times[0][0] <= now:
            times.popleft()
            return True
        return False

    def count(self, now: float) -> int:
        """Return how many slots are left."""
        while self._times and self._times[0][1] < now:
            self._times.popleft()
        return len(self._times)

    @property
    def first(self) -> float | None:
        """When the next slot begins."""
        return self._times[0][0] if self._times else None

    @property
    def last(self) -> float | None:
        """When the last slot begins."""
        return self._times[-1][0] if self._times else None

    def _measured(self, offset: float, now: float) -> float:
        """Return the smallest difference seen: an answer that took less time is closer to it."""
        known = self._offset
        if known is not None and abs(offset - known) < _STEP_S:
            offset = min(offset, known + (now - self._measured_at) * _DRIFT)
        self._offset, self._measured_at = offset, now
        return offset
