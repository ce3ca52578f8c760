"""Values of the recent past, computed when they are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import ceil

WINDOW_S = 60.0
MOST = 2000
"""Values remembered; with more in the window, the latest count."""


class RecentValues:
    """Numbers of a sliding window: their rate, maximum and quantiles."""

    def __init__(self, monotonic: Callable[[], float], *, window_s: float = WINDOW_S) -> None:
        self._monotonic, self._window_s = monotonic, window_s
        self._values: deque[tuple[float, float]] = deque(maxlen=MOST)

    def add(self, value: float = 1.0) -> None:
        """Record a value."""
        self._values.append((self._monotonic(), value))

    @property
    def rate(self) -> float:
        """The sum of the values, per second of the window."""
        return sum(self._current()) / self._window_s

    def quantile(self, share: float) -> float:
        """Return the smallest value that `share` of the values do not exceed; 0 without values."""
        values = sorted(self._current())
        return values[max(ceil(share * len(values)) - 1, 0)] if values else 0.0

    def _current(self) -> list[float]:
        since = self._monotonic() - self._window_s
        return [value for at, value in self._values if at >= since]


class RecentMaximum:
    """The highest value of the current and the previous window, in constant memory."""

    def __init__(self, monotonic: Callable[[], float], *, window_s: float = WINDOW_S) -> None:
        self._monotonic, self._window_s = monotonic, window_s
        self._turn, self._high, self._previous = 0, 0, 0

    def add(self, value: int) -> None:
        """Record a value."""
        self._move()
        self._high = max(self._high, value)

    @property
    def value(self) -> int:
        """The highest value recorded within the last one to two windows; 0 without any."""
        self._move()
        return max(self._high, self._previous)

    def _move(self) -> None:
        turn = int(self._monotonic() // self._window_s)
        if turn != self._turn:
            self._previous = self._high if turn == self._turn + 1 else 0
            self._turn, self._high = turn, 0
