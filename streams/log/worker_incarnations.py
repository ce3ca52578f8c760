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
        self.owner, self.current = owner, current


class Incarnations(Protocol):
    """Stores the newest incarnation of each worker, such as `worker-0/5f3a`."""

    async def current(self) -> Mapping[str, str]:
        """Return the newest incarnation of every worker.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    async def replace(self, previous: str | None, owner: str) -> bool:
        """Store `owner` if `previous` is its worker's newest incarnation; None: it has none.

        Return whether it was stored. A request that arrives after another process of the
        worker was registered therefore changes nothing.

        Raises:
            Unavailable: the store cannot be reached; the request may still arrive.
        """
        ...


def worker_of(owner: str) -> str:
    """Return the worker of incarnation `owner`."""
    return owner.rpartition("/")[0]


def is_over(owner: str, incarnations: Mapping[str, str]) -> bool:
    """Return whether `owner` has a newer incarnation; False for unregistered workers."""
    return incarnations.get(worker_of(owner), owner) != owner


class PostgresIncarnations:
    """Incarnations in a table; losing it only delays takeover until leases expire."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def current(self) -> Mapping[str, str]:
        """Return the newest incarnation of every worker."""
        return {row["worker"]: row["life"] for row in await self._ask("incarnations")}

    async def replace(self, previous: str | None, owner: str) -> bool:
        """Store `owner` if `previous` is its worker's newest incarnation."""
        worker = worker_of(owner)
        if previous is None:
            return bool(await self._ask("add_incarnation", worker, owner))
        return bool(await self._ask("replace_incarnation", worker, previous, owner))

    async def _ask(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        with translated(LogUnavailable, "use noetl.worker_life"):
            return list(await self._pool.fetch(query(name), *arguments))


class MemoryIncarnations:
    """Incarnations in memory, for tests and the simulator."""

    def __init__(self) -> None:
        self._incarnations: dict[str, str] = {}

    async def current(self) -> Mapping[str, str]:
        """Return the newest incarnation of every worker."""
        return dict(self._incarnations)

    async def replace(self, previous: str | None, owner: str) -> bool:
        """Store `owner` if `previous` is its worker's newest incarnation."""
        worker = worker_of(owner)
        if self._incarnations.get(worker) != previous:
            return False
        self._incarnations[worker] = owner
        return True


async def begin(incarnations: Incarnations, owner: str) -> None:
    """Register `owner` as the newest incarnation of its worker, before it claims anything.

    Of two processes that register at once, the later one supersedes the other. The request of
    a process that has died expects an incarnation that its successor has replaced.

    Raises:
        Unavailable: the store cannot be reached; a second call with the same name is harmless.
    """
    while (newest := (await incarnations.current()).get(worker_of(owner))) != owner:
        if await incarnations.replace(newest, owner):
            return


@asynccontextmanager
async def incarnation(pool: asyncpg.Pool, owner: str) -> AsyncIterator[Incarnations]:
    """Register an incarnation; leases of earlier ones can be taken over from now on."""
    incarnations = PostgresIncarnations(pool)
    await begin(incarnations, owner)
    yield incarnations


async def check(incarnations: Incarnations, owner: str) -> None:
    """Raise if `owner` has a newer incarnation.

    Raises:
        Superseded: it has.
        Unavailable: the store cannot be reached.
    """
    newest = (await incarnations.current()).get(worker_of(owner))
    if newest != owner:
        raise Superseded(owner, newest)
