"""Hosts that answer 429 or 503 with `Retry-After`: not asked before, and paced afterwards."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from streams.clock import Clock
from streams.worker.pace.host_rate import HostRate
from streams.worker.port import ReleasedSlot

TOO_MANY, UNAVAILABLE = 429, 503
LONGEST_PAUSE_S = 900.0
"""A call does not wait longer than this; it fails instead, without asking the host."""
_WINDOW_S = 1.03
"""Hosts count requests over a second; the rest is for those that arrive out of step."""
_CATCH_UP_S = 0.5
"""The most idle time that is made up for."""
_WANTED_S = 1.0
"""So long after a request had to wait, the host's rate counts as used up."""


def retry_after_s(value: str, now: datetime) -> float | None:
    """Return the seconds of a `Retry-After` header: a number, or a date; None if it is neither."""
    text = value.strip()
    if text.isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


def note_answer(pace: HostPace, sent_at: float, status: int, retry_after: str | None) -> None:
    """Note the answer to a request that may ask to wait.

    429 also means that requests were too frequent. 503 does not: a host that fails now and then
    is asked again after its pause, at the rate as before.
    """
    asked = None
    if status in (TOO_MANY, UNAVAILABLE) and retry_after is not None:
        asked = retry_after_s(retry_after, datetime.now(UTC))
    if not asked:
        pace.accepted(sent_at)
    elif status == TOO_MANY:
        pace.limited(sent_at, asked)
    else:
        pace.pause(asked)


class HostPaces:
    """The hosts that this worker's tasks send requests to."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hosts: dict[str, HostPace] = {}

    def of(self, host: str) -> HostPace:
        """Return the pace of a host."""
        found = self._hosts.get(host)
        if found is None:
            found = self._hosts[host] = HostPace(self._clock)
        return found


class HostPace:
    """One host: requests pass at once, until it limits them.

    While it asks to wait, none passes. Afterwards they pass one by one, at the rate that it
    accepts; time in which none was sent is made up for, as far as no second has too many.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rate = HostRate()
        self._paused_until = self._next_at = float("-inf")
        self._held_at = float("-inf")
        self._sent: deque[float] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def pause_s(self) -> float:
        """How long the host must not be asked."""
        return max(0.0, self._paused_until - self._clock.monotonic())

    @property
    def per_second(self) -> float | None:
        """The rate at which requests pass; None: it is not limited."""
        return self._rate.per_second

    async def wait(self, released: ReleasedSlot) -> float:
        """Wait until a request may be sent, in the context `released`; return the time."""
        now = self._clock.monotonic()
        if self._waiting or now < self._free_at():
            self._held_at = now
            await self._turn(released())
            return self._clock.monotonic()
        self._pass(now)
        return now

    def accepted(self, sent_at: float) -> None:
        """Note a request that the host did not limit."""
        now = self._clock.monotonic()
        is_wanted = bool(self._waiting) or now - self._held_at < _WANTED_S
        self._rate.accepted(sent_at, now, is_wanted=is_wanted)

    def limited(self, sent_at: float, pause_s: float) -> None:
        """Note a request that the host limited, asking to wait `pause_s`."""
        self._rate.limited(sent_at, self._clock.monotonic(), pause_s)
        self.pause(pause_s)

    def pause(self, pause_s: float) -> None:
        """Send nothing for so long."""
        self._paused_until = max(self._paused_until, self._clock.monotonic() + pause_s)
        self._next_at = max(self._next_at, self._paused_until)
        self._arm()

    async def _turn(self, released: AbstractContextManager[None]) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._arm()
        with released:
            await turn

    def _free_at(self) -> float:
        """When the next request may be sent."""
        free_at = max(self._paused_until, self._next_at)
        if (in_window := self._rate.in_window) is None or len(self._sent) < in_window:
            return free_at
        return max(free_at, self._sent[-in_window] + _WINDOW_S)

    def _pass(self, now: float) -> None:
        """Count a request that is sent at `now`."""
        self._sent.append(now)
        while self._sent[0] <= now - _WINDOW_S:
            self._sent.popleft()
        if (rate := self._rate.per_second) is not None:
            self._next_at = max(self._next_at, now - _CATCH_UP_S) + 1 / rate

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            delay_s = self._free_at() - self._clock.monotonic()
            self._timer = asyncio.get_running_loop().call_later(max(0.0, delay_s), self._release)

    def _release(self) -> None:
        now, self._timer = self._clock.monotonic(), None
        while self._waiting and now >= self._free_at():
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._pass(now)
        self._arm()
