"""Limits of a subscription: how many executions run, and how many start in a second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from streams.clock import Clock
from streams.subscription.model import DispatchUnit, Subscription

PAUSE_S = 0.2


class TokenBucket:
    """Tokens that refill at a rate; it holds those of a tenth of a second, at least one."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._rate, self._clock = per_second, clock
        self._most = max(1.0, per_second / 10)
        self._tokens, self._at = self._most, clock.monotonic()

    def available(self) -> int:
        """Return how many whole tokens there are."""
        now = self._clock.monotonic()
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate)
        self._at = now
        return int(self._tokens)

    def take(self, count: int) -> None:
        """Remove tokens."""
        self._tokens -= count

    @property
    def wait_s(self) -> float:
        """How long until there is one token."""
        return max(0.0, (1 - self._tokens) / self._rate)


class Admission:
    """Waits while a subscription is at a limit; its topic is not fetched meanwhile."""

    def __init__(
        self,
        subscription: Subscription,
        clock: Clock,
        *,
        open_executions: Callable[[int], Awaitable[int]],
        share: Callable[[], float],
        beat: Callable[[], None],
    ) -> None:
        """`share` is this process's part of the topic, for the rate."""
        self._most = subscription.max_in_flight
        self._rate = subscription.max_per_second
        self._is_batch = subscription.dispatch.unit is DispatchUnit.BATCH
        self._clock, self._open, self._share, self._beat = clock, open_executions, share, beat
        self._bucket: TokenBucket | None = None
        self._shared = 0.0

    async def admit(self, wanted: int) -> int:
        """Wait until an execution may start; return how many of the wanted records may.

        Raises:
            Unavailable: the database cannot be reached.
        """
        while True:
            executions = 1 if self._is_batch else wanted
            pause_s = PAUSE_S
            if self._rate is not None:
                bucket = self._tokens(self._rate)
                executions = min(executions, bucket.available())
                pause_s = min(PAUSE_S, bucket.wait_s)
            if self._most is not None and executions > 0:
                executions = min(executions, self._most - await self._open(self._most))
            if executions > 0:
                if self._bucket is not None:
                    self._bucket.take(executions)
                return wanted if self._is_batch else executions
            self._beat()
            await asyncio.sleep(pause_s)

    def _tokens(self, rate: int) -> TokenBucket:
        """Return the bucket of this process's share, which changes with its partitions."""
        share = self._share()
        if self._bucket is None or share != self._shared:
            self._bucket, self._shared = TokenBucket(rate * share, self._clock), share
        return self._bucket
