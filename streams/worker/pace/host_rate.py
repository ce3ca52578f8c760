"""Estimate of the rate that a host accepts, from its answers. Pure."""

from __future__ import annotations

from collections import deque

LEAST_PER_SECOND = 0.5
FORGET_S = 300.0
"""A host that did not limit for so long is no longer paced."""
_WINDOW_S = 1.0
_BELOW = 0.98
"""A rate is set to this part of what was accepted in a second."""
_QUICK_EVERY_S, _QUICK = 1.0, 1.05
_SLOW_EVERY_S, _LONGEST_EVERY_S, _SLOW = 5.0, 60.0, 1.02
_UNPROVEN_AFTER_S = 180.0


class HostRate:
    """The rate of one host; None until it limits requests.

    The first refusal sets it to what was accepted in the second before. It then grows quickly
    until the host limits again, which proves it, and slowly from then on: each probe costs the
    pause that the host asks for.
    """

    def __init__(self) -> None:
        self.per_second: float | None = None
        self._accepted: deque[float] = deque()
        self._limited_at = self._resumed_at = self._grown_at = float("-inf")
        self._counted = 0
        self._is_proven = False
        self._every_s = _QUICK_EVERY_S

    @property
    def in_window(self) -> int | None:
        """The most requests of a second; None: any number."""
        return None if self.per_second is None else max(1, round(self.per_second / _BELOW))

    def accepted(self, sent_at: float, now: float, *, is_wanted: bool) -> None:
        """Note a request that was not limited; `is_wanted`: others wait for their turn."""
        if sent_at <= self._limited_at:
            self._count_late()
            return
        self._accepted.append(sent_at)
        while self._accepted[0] <= sent_at - _WINDOW_S:
            self._accepted.popleft()
        if self.per_second is not None and now - self._limited_at > FORGET_S:
            self.per_second = None
        elif is_wanted:
            self._grow(now)

    def limited(self, sent_at: float, now: float, pause_s: float) -> None:
        """Note a request that was limited."""
        if sent_at <= self._limited_at:
            self._resumed_at = max(self._resumed_at, now + pause_s)
            return  # sent before the last refusal was known
        self._counted = sum(1 for at in self._accepted if at > sent_at - _WINDOW_S)
        known = self.per_second
        if known is None:
            self.per_second = max(LEAST_PER_SECOND, self._counted * _BELOW)
        else:
            is_whole = now - self._resumed_at >= _WINDOW_S
            found = self._counted * _BELOW if is_whole and self._counted else known * 0.9
            self.per_second = max(LEAST_PER_SECOND, min(known, found))
            self._every_s = (
                min(_LONGEST_EVERY_S, self._every_s * 2) if self._is_proven else _SLOW_EVERY_S
            )
            self._is_proven = True
        self._limited_at = self._grown_at = now
        self._resumed_at = now + pause_s
        self._accepted.clear()

    def _count_late(self) -> None:
        """Count an acceptance that arrived after the refusal of a later request."""
        self._counted += 1
        if self.per_second is not None and not self._is_proven:
            self.per_second = max(self.per_second, self._counted * _BELOW)

    def _grow(self, now: float) -> None:
        if self.per_second is None or now < self._resumed_at:
            return
        since = now - max(self._grown_at, self._resumed_at)
        if self._is_proven and now - self._resumed_at > _UNPROVEN_AFTER_S:
            self._is_proven, self._every_s = False, _QUICK_EVERY_S
        if since >= self._every_s:
            self.per_second *= _SLOW if self._is_proven else _QUICK
            self._grown_at = now
