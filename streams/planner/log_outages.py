"""When the log was away: leases do not run out meanwhile, because nobody could renew them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TypeVar

from streams.clock import Clock
from streams.errors import Refused

T = TypeVar("T")
_SLOW = timedelta(seconds=1)
"""A call without an answer for this long counts as unanswered."""


class LogOutages:
    """Notes when the log came back after it had answered nothing for `tolerated` or longer.

    Leases are counted from then on at the earliest. A shorter outage is covered by the margin
    that every lease has.
    """

    def __init__(self, clock: Clock, tolerated: timedelta) -> None:
        self._clock, self._tolerated = clock, tolerated
        self._since: datetime | None = None
        self._has_failed = False
        self.ended_at: datetime | None = None

    @property
    def is_away(self) -> bool:
        """Whether the last call failed, or waits for its answer unusually long.

        Not while a call is merely under way: the other executions of a batch would each ask
        the log whether it responds.
        """
        if self._since is None:
            return False
        return self._has_failed or self._clock.now() - self._since >= _SLOW

    def floor(self, floor: datetime) -> datetime:
        """Return the time from which leases are counted at the earliest."""
        return floor if self.ended_at is None else max(floor, self.ended_at)

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what a call to the log returns; a refusal is an answer, too."""
        if self._since is None:
            self._since = self._clock.now()
        try:
            answer = await call()
        except Refused:
            self._answered()
            raise
        except BaseException:
            self._has_failed = True
            raise
        self._answered()
        return answer

    def _answered(self) -> None:
        if self._since is None:
            return
        now = self._clock.now()
        if now - self._since >= self._tolerated:
            self.ended_at = now
        self._since, self._has_failed = None, False
