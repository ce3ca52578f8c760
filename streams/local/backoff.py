"""Back-off between restarts of a service."""

from __future__ import annotations

FIRST_SECONDS = 0.2
LONGEST_SECONDS = 15.0
# A service that ran this long is healthy: the back-off starts over.
HEALTHY_SECONDS = 30.0


class Backoff:
    """Doubles the wait after each early exit."""

    def __init__(self) -> None:
        self._next = FIRST_SECONDS

    def after_running(self, seconds: float) -> float:
        """Return the wait after an exit `seconds` after the start."""
        if seconds >= HEALTHY_SECONDS:
            self._next = FIRST_SECONDS
        delay, self._next = self._next, min(self._next * 2, LONGEST_SECONDS)
        return delay
