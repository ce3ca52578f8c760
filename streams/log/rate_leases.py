"""Leases of rates: slices of the times at which calls under one key may be made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import asyncpg

from streams.clock import Clock
from streams.log.errors import LogUnavailable
from streams.postgres import queries, translated

query = queries("streams.log")


@dataclass(frozen=True, slots=True)
class RateSlice:
    """Times of the store's clock, in seconds: the first one leased, and the time it was asked."""

    first_at: float
    now_at: float


class RateLeases(Protocol):
    """Hands out the times under a key, each once, over all workers."""

    async def lease(self, key: str, *, interval_s: float, count: int, behind_s: float) -> RateSlice:
        """Take the next `count` times under `key`, which are `interval_s` apart.

        The first is at most `behind_s` in the past, where the key was idle.

        Raises:
            Unavailable: the store cannot be reached; asking again wastes a slice at most.
        """
        ...


class PostgresRateLeases:
    """Times in a table of the log's database, by its clock."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def lease(self, key: str, *, interval_s: float, count: int, behind_s: float) -> RateSlice:
        """Take the next `count` times under `key`."""
        with translated(LogUnavailable, "use noetl.rate_bucket"):
            row = await self._pool.fetchrow(query("lease_rate"), key, behind_s, count * interval_s)
        return RateSlice(float(row["first_at"]), float(row["now_at"]))


class MemoryRateLeases:
    """Times in memory, for one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_at: dict[str, float] = {}

    async def lease(self, key: str, *, interval_s: float, count: int, behind_s: float) -> RateSlice:
        """Take the next `count` times under `key`."""
        now = self._clock.monotonic()
        first = max(self._next_at.get(key, now - behind_s), now - behind_s)
        self._next_at[key] = first + count * interval_s
        return RateSlice(first, now)
