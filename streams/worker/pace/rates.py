"""Rates over all workers: calls wait for slots, which are leased in slices."""

from __future__ import annotations

import asyncio
from collections import deque
from math import ceil

from streams.clock import Clock
from streams.holds import Holds
from streams.log.rate_leases import MemoryRateLeases, RateLeases, RateSlice
from streams.retry import retry
from streams.worker.pace.slots import Rate, Slots

SLICE_S = 0.1
"""The length of a slice: shorter ones cost more requests, longer ones waste more if unused."""
FEWEST = 4
"""Slots of a slice at low rates, if as many calls wait."""
LEAD_S = 0.25
"""How long before its last slot begins the next slice is requested."""
IDLE_S = 60.0
"""Keys unused for so long are forgotten."""


class RateLimits:
    """The keys in use by one worker."""

    def __init__(self, leases: RateLeases, clock: Clock, holds: Holds | None = None) -> None:
        self._leases, self._clock, self._holds = leases, clock, holds
        self._keys: dict[tuple[str, Rate], _Key] = {}

    async def wait(self, key: str, rate: Rate) -> None:
        """Wait until a call under `key` may be made; while the store is away, none may."""
        found = self._keys.get((key, rate))
        if found is None:
            self._forget_idle()
            found = _Key(key, rate, self._leases, self._clock, self._holds)
            self._keys[key, rate] = found
        await found.wait()

    def try_now(self, key: str, rate: Rate) -> bool:
        """Use a slot if one has begun and nobody waits for it."""
        found = self._keys.get((key, rate))
        return found is not None and found.try_now()

    async def aclose(self) -> None:
        """Cancel requests for slices."""
        for one in self._keys.values():
            await one.close()
        self._keys.clear()

    def _forget_idle(self) -> None:
        now = self._clock.monotonic()
        for name in [name for name, one in self._keys.items() if one.is_idle(now)]:
            del self._keys[name]


def local_rates(clock: Clock) -> RateLimits:
    """Return limits that hold for this process only."""
    return RateLimits(MemoryRateLeases(clock), clock)


class _Key:
    """The calls that wait under one key, and its leased slots."""

    def __init__(
        self, name: str, rate: Rate, leases: RateLeases, clock: Clock, holds: Holds | None
    ) -> None:
        self._rate = rate
        self._name, self._leases, self._clock, self._holds = name, leases, clock, holds
        self._slots = Slots()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._used: deque[float] = deque()
        self._leasing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._asked_at = clock.monotonic()

    def try_now(self) -> bool:
        """Use a slot that has begun, unless others wait."""
        now = self._clock.monotonic()
        if self._waiting or not self._slots.take(now):
            return False
        self._note_use(now)
        return True

    async def wait(self) -> None:
        """Wait for a slot, in the order of calls."""
        self._asked_at = self._clock.monotonic()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._serve()
        await turn

    def is_idle(self, now: float) -> bool:
        """Return whether it was not used for long."""
        return not self._waiting and now - self._asked_at > IDLE_S

    async def close(self) -> None:
        """Stop."""
        if self._timer is not None:
            self._timer.cancel()
        if self._leasing is not None:
            self._leasing.cancel()
            await asyncio.gather(self._leasing, return_exceptions=True)

    def _serve(self) -> None:
        """Give slots that have begun to those who wait, and see to the next ones."""
        now = self._clock.monotonic()
        while self._waiting:
            if self._waiting[0].done():  # cancelled
                self._waiting.popleft()
            elif self._slots.take(now):
                self._waiting.popleft().set_result(None)
                self._note_use(now)
            else:
                break
        if not self._waiting:
            return
        left, last = self._slots.count(now), self._slots.last
        if left < len(self._waiting) and (last is None or last - now < LEAD_S):
            self._lease()
        if (first := self._slots.first) is not None:
            self._wake_in(max(0.0, first - now))

    def _wake_in(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._serve)

    def _lease(self) -> None:
        if self._leasing is None or self._leasing.done():
            self._leasing = asyncio.ensure_future(self._request())

    async def _request(self) -> None:
        count, rate = self._wanted(), self._rate

        async def ask() -> RateSlice:
            return await self._leases.lease(
                self._name, interval_s=rate.interval_s, count=count, behind_s=rate.behind_s
            )

        try:
            found = await retry(ask, holds=self._holds)
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait
            self._fail(error)
            return
        self._slots.add(found, rate, count, self._clock.monotonic())
        self._leasing = None
        self._serve()

    def _fail(self, error: Exception) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error)

    def _wanted(self) -> int:
        """Return how many slots to take: as many as wait, or half as many as were just used."""
        now = self._clock.monotonic()
        while self._used and now - self._used[0] > SLICE_S:
            self._used.popleft()
        most = max(FEWEST, ceil(self._rate.per_second * SLICE_S), self._rate.burst)
        missing = len(self._waiting) - self._slots.count(now)
        return min(most, max(1, missing, len(self._used) // 2))

    def _note_use(self, now: float) -> None:
        self._used.append(now)
        if len(self._used) > 2 * self._rate.per_second * SLICE_S + 16:
            self._used.popleft()
