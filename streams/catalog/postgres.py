"""Catalog events by path, straight from the log in Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import asyncpg

from streams.events.codec import Codec
from streams.events.model import Event
from streams.log.errors import LogUnavailable
from streams.log.rows import assigned
from streams.payload.port import Scope
from streams.postgres import CONNECTION_LOST, translated

WAIT_S = 30.0

_EVENTS = """
    SELECT seq, position, stream_version, ingest_time, chain, envelope
    FROM noetl.event
    WHERE root_type = 'catalog' AND tenant_id = $1 AND organization_id = $2
"""

# What was said of one path; by the index event_catalog.
_OF_PATH = f"{_EVENTS} AND meta->>'path' = $3 ORDER BY root_id, seq"

# What was said of all paths of an organization.
_OF_SCOPE = f"{_EVENTS} ORDER BY root_id, seq"

# Held to the end of the transaction. Two keys, so that it is none of the locks of roots.
_ALONE = "SELECT pg_advisory_xact_lock(hashtext('noetl.catalog'), hashtext($1))"


class PostgresCatalogEvents:
    """Finds catalog events by an index of the log, the newest committed included."""

    def __init__(self, pool: asyncpg.Pool, codec: Codec) -> None:
        self._pool, self._codec = pool, codec
        # Who holds a path needs a second connection to read it: one at a time, or all wait.
        self._one = asyncio.Semaphore(1)

    async def of_path(self, scope: Scope, path: str) -> Sequence[Event]:
        """Return the catalog events of a path, oldest first."""
        return await self._read(_OF_PATH, scope.tenant_id, scope.organization_id, path)

    async def of_scope(self, scope: Scope) -> Sequence[Event]:
        """Return the catalog events of every path, oldest first of each root."""
        return await self._read(_OF_SCOPE, scope.tenant_id, scope.organization_id)

    @asynccontextmanager
    async def alone(self, scope: Scope, path: str) -> AsyncIterator[None]:
        """Hold a path in this database while looking it up and appending to it."""
        name = f"{scope.tenant_id}/{scope.organization_id}/{path}"
        async with self._one:
            with translated(LogUnavailable, "read the catalog"):
                connection = await self._pool.acquire(timeout=WAIT_S)
            try:
                with translated(LogUnavailable, "read the catalog"):
                    await connection.execute("BEGIN")
                    await connection.execute(_ALONE, name, timeout=WAIT_S)
                yield
            finally:
                # A connection that is lost has ended its transaction, and with it the lock.
                with suppress(*CONNECTION_LOST, asyncpg.PostgresError):
                    await connection.execute("ROLLBACK")
                await self._pool.release(connection)

    async def _read(self, sql: str, *arguments: str) -> Sequence[Event]:
        with translated(LogUnavailable, "read the catalog"):
            rows = await self._pool.fetch(sql, *arguments)
        found = []
        for row in rows:
            await self._codec.learn(row["envelope"])
            found.append(self._codec.decode(row["envelope"], assigned(row)))
        return found
