"""Catalog events by path, from the log in Postgres."""

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

# Uses the index event_catalog.
_OF_PATH = f"{_EVENTS} AND meta->>'path' = $3 ORDER BY root_id, seq"


_OF_SCOPE = f"{_EVENTS} ORDER BY root_id, seq"

# Uses the index event_subscription.
_SUBSCRIPTION_ROOTS = """
    SELECT root_id FROM noetl.event
    WHERE root_type = 'catalog' AND meta->>'kind' = 'subscription'
"""
_OF_SUBSCRIPTIONS = f"""
    SELECT seq, position, stream_version, ingest_time, chain, envelope
    FROM noetl.event
    WHERE root_type = 'catalog' AND root_id IN ({_SUBSCRIPTION_ROOTS})
    ORDER BY root_id, seq
"""  # noqa: S608 - no value is put into it
# A root's seq has no gaps, so the sum changes with every event.
_MARK = f"""
    SELECT coalesce(sum(seq), 0)::bigint FROM noetl.root_head
    WHERE root_type = 'catalog' AND root_id IN ({_SUBSCRIPTION_ROOTS})
"""  # noqa: S608 - no value is put into it

# Held to the end of the transaction. Two keys: a separate lock space from that of roots.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('noetl.catalog'), hashtext($1))"


class PostgresCatalogEvents:
    """Reads catalog events by an index of the log; sees all committed ones."""

    def __init__(self, pool: asyncpg.Pool, codec: Codec) -> None:
        self._pool, self._codec = pool, codec
        # The holder of a path needs a second connection: more than one holder could deadlock.
        self._one = asyncio.Semaphore(1)

    async def of_path(self, scope: Scope, path: str) -> Sequence[Event]:
        """Return the catalog events of a path, oldest first."""
        return await self._read(_OF_PATH, scope.tenant_id, scope.organization_id, path)

    async def of_scope(self, scope: Scope) -> Sequence[Event]:
        """Return the catalog events of every path, oldest first of each root."""
        return await self._read(_OF_SCOPE, scope.tenant_id, scope.organization_id)

    @asynccontextmanager
    async def lock(self, scope: Scope, path: str) -> AsyncIterator[None]:
        """Lock a path in this database during lookup and append."""
        name = f"{scope.tenant_id}/{scope.organization_id}/{path}"
        async with self._one:
            with translated(LogUnavailable, "read the catalog"):
                connection = await self._pool.acquire(timeout=WAIT_S)
            try:
                with translated(LogUnavailable, "read the catalog"):
                    await connection.execute("BEGIN")
                    await connection.execute(_LOCK, name, timeout=WAIT_S)
                yield
            finally:
                # Losing the connection ends its transaction, and with it the lock.
                with suppress(*CONNECTION_LOST, asyncpg.PostgresError):
                    await connection.execute("ROLLBACK")
                await self._pool.release(connection)

    async def _read(self, sql: str, *arguments: str) -> Sequence[Event]:
        return await _read(self._pool, self._codec, sql, *arguments)


class PostgresSubscriptionEvents:
    """Reads the events of subscriptions by an index of the log; sees all committed ones."""

    def __init__(self, pool: asyncpg.Pool, codec: Codec) -> None:
        self._pool, self._codec = pool, codec

    async def all(self) -> Sequence[Event]:
        """Return the events of every subscription's root, oldest first of each root."""
        return await _read(self._pool, self._codec, _OF_SUBSCRIPTIONS)

    async def mark(self) -> int:
        """Return the sum of the roots' last places."""
        with translated(LogUnavailable, "read the catalog"):
            found: int = await self._pool.fetchval(_MARK)
        return found


async def _read(pool: asyncpg.Pool, codec: Codec, sql: str, *arguments: str) -> Sequence[Event]:
    with translated(LogUnavailable, "read the catalog"):
        rows = await pool.fetch(sql, *arguments)
    found = []
    for row in rows:
        await codec.learn(row["envelope"])
        found.append(codec.decode(row["envelope"], assigned(row)))
    return found
