"""Worker incarnations: a restarted worker loses the leases of its predecessor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import asyncpg

from streams.errors import Inconsistent
from streams.log.errors import LogUnavailable
from streams.postgres import queries, translated

query = queries("streams.log")


class Superseded(Inconsistent):
    """Another process has this worker's name; this one must exit."""

    def __init__(self, owner: str, current: str | None) -> None:
        super().__init__(
            f"{owner} was superseded by {current or 'nobody'}; "
            "give each process its own NOETL_SHARD_ID"
        )


class Incarnations(Protocol):
    """Stores the newest incarnation of each worker, such as `worker-0/5f3a`."""

    async def begin(self, owner: str) -> None:
        """Register `owner` as the newest incarnation, before it claims anything.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    async def current(self) -> Mapping[str, str]:
        """Return the newest incarnation of every worker.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...


def worker_of(owner: str) -> str:
    """Return the worker of incarnation `owner`."""
    return owner.rpartition("/")[0]


def is_over(owner: str, lives: Mapping[str, str]) -> bool:
    """Return whether `owner` has a newer incarnation; False for unregistered workers."""
    return lives.get(worker_of(owner), owner) != owner


class PostgresIncarnations:
    """Incarnations in a table; losing it only delays takeover until leases expire."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def begin(self, owner: str) -> None:
        """Register `owner` as the newest incarnation."""
        await self._ask("begin_life", worker_of(owner), owner)

    async def current(self) -> Mapping[str, str]:
        """Return the newest incarnation of every worker."""
        return {row["worker"]: row["life"] for row in await self._ask("lives")}

    async def _ask(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        with translated(LogUnavailable, "use noetl.worker_life"):
            return list(await self._pool.fetch(query(name), *arguments))


class MemoryIncarnations:
    """Incarnations in memory, for tests and the simulator."""

    def __init__(self) -> None:
        self._lives: dict[str, str] = {}

    async def begin(self, owner: str) -> None:
        """Register `owner` as the newest incarnation."""
        self._lives[worker_of(owner)] = owner

    async def current(self) -> Mapping[str, str]:
        """Return the newest incarnation of every worker."""
        return dict(self._lives)


@asynccontextmanager
async def incarnation(pool: asyncpg.Pool, owner: str) -> AsyncIterator[Incarnations]:
    """Register an incarnation; leases of earlier ones can be taken over from now on."""
    lives = PostgresIncarnations(pool)
    await lives.begin(owner)
    yield lives


async def check(lives: Incarnations, owner: str) -> None:
    """Raise if `owner` has a newer incarnation.

    Raises:
        Superseded: it has.
        Unavailable: the store cannot be reached.
    """
    newest = (await lives.current()).get(worker_of(owner))
    if newest != owner:
        raise Superseded(owner, newest)
