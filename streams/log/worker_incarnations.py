"""Which life each worker is in: one that began anew holds nothing of what it held before."""

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
    """Another process has this worker's name now; this one must end."""

    def __init__(self, owner: str, current: str | None) -> None:
        super().__init__(
            f"{owner} is no longer the worker of that name: {current or 'nobody'} is; "
            "give each process a NOETL_SHARD_ID of its own"
        )


class Lives(Protocol):
    """Keeps, for each worker, the name of its newest life, such as `worker-0/5f3a`."""

    async def begin(self, owner: str) -> None:
        """Say that the worker is `owner` from now on, before it claims anything.

        Raises:
            Unavailable: this cannot be kept now.
        """
        ...

    async def current(self) -> Mapping[str, str]:
        """Return the newest life of every worker that ever began one.

        Raises:
            Unavailable: this cannot be known now.
        """
        ...


def worker_of(owner: str) -> str:
    """Return the worker whose life `owner` is."""
    return owner.rpartition("/")[0]


def is_over(owner: str, lives: Mapping[str, str]) -> bool:
    """Say whether `owner` is an earlier life of a worker; one who never began a life is not."""
    return lives.get(worker_of(owner), owner) != owner


class PostgresLives:
    """Lives in a table beside the log; losing it costs waiting for leases, nothing else."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def begin(self, owner: str) -> None:
        """Say that the worker is `owner` from now on."""
        await self._ask("begin_life", worker_of(owner), owner)

    async def current(self) -> Mapping[str, str]:
        """Return the newest life of every worker."""
        return {row["worker"]: row["life"] for row in await self._ask("lives")}

    async def _ask(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        with translated(LogUnavailable, "use noetl.worker_life"):
            return list(await self._pool.fetch(query(name), *arguments))


class MemoryLives:
    """Lives in memory, for tests and the simulator."""

    def __init__(self) -> None:
        self._lives: dict[str, str] = {}

    async def begin(self, owner: str) -> None:
        """Say that the worker is `owner` from now on."""
        self._lives[worker_of(owner)] = owner

    async def current(self) -> Mapping[str, str]:
        """Return the newest life of every worker."""
        return dict(self._lives)


@asynccontextmanager
async def living(pool: asyncpg.Pool, owner: str) -> AsyncIterator[Lives]:
    """Begin a life at once: what an earlier one held is given to others from now on."""
    lives = PostgresLives(pool)
    await lives.begin(owner)
    yield lives


async def check(lives: Lives, owner: str) -> None:
    """End a process whose worker has a newer life.

    Raises:
        Superseded: it has.
        Unavailable: this cannot be known now.
    """
    newest = (await lives.current()).get(worker_of(owner))
    if newest != owner:
        raise Superseded(owner, newest)
