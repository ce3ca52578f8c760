"""How long to wait before a service that died is started again."""

from __future__ import annotations

FIRST_SECONDS = 0.2
LONGEST_SECONDS = 15.0
# A service that ran this long was well: its next end is a first one again.
HEALTHY_SECONDS = 30.0


class Backoff:
    """Doubles the wait from one early end to the next."""

    def __init__(self) -> None:
        self._next = FIRST_SECONDS

    def after_running(self, seconds: float) -> float:
        """Return the wait after an end that came `seconds` after the start."""
        if seconds >= HEALTHY_SECONDS:
            self._next = FIRST_SECONDS
        delay, self._next = self._next, min(self._next * 2, LONGEST_SECONDS)
        return delay
