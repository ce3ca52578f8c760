"""The collector's view of the log in Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg
import orjson

from streams.collector.core import (
    Fact,
    Names,
    RootHolding,
    RootState,
    digests_in,
    folder_of,
    hold,
    located_in,
)
from streams.collector.errors import CollectorBusy, LockLost
from streams.collector.port import NO_ENDS, Ends
from streams.events.catalogue import catalogue
from streams.log.errors import LogUnavailable
from streams.postgres import CONNECTION_LOST, connecting, queries, translated

_query = queries("streams.collector")
_AT_ONCE = 1000
_PATIENCE_S = 10
_LOCK = "SELECT pg_try_advisory_lock(hashtext('noetl.collector'))"
_UNLOCK = "SELECT pg_advisory_unlock(hashtext('noetl.collector'))"
_ALONE = (
    "SELECT EXISTS (SELECT FROM pg_locks "
    "WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted)"
)
_LINKS = "SELECT key, links, sure FROM noetl.payload_link WHERE key = ANY($1)"
_REMEMBER = (
    "INSERT INTO noetl.payload_link (key, links, sure) "
    "SELECT key, ARRAY(SELECT jsonb_array_elements_text(links)), "
    "ARRAY(SELECT jsonb_array_elements_text(sure)) "
    "FROM unnest($1::text[], $2::jsonb[], $3::jsonb[]) AS new (key, links, sure) "
    "ON CONFLICT DO NOTHING"
)
_FORGET = "DELETE FROM noetl.payload_link WHERE key = ANY($1)"


def _endings() -> list[str]:
    return list(catalogue().endings)


@dataclass(frozen=True, slots=True)
class PostgresSnapshot:
    """A transaction that sees the log as it was when it began."""

    now: datetime
    connection: asyncpg.Connection

    async def holdings(
        self, execution_ids: Collection[int] | None = None, ended: Ends = NO_ENDS
    ) -> AsyncIterator[RootHolding]:
        """Yield what each root holds; the events come sorted by root."""
        root: RootState | None = None
        facts: list[Fact] = []
        asked = None if execution_ids is None else list(execution_ids)
        async for row in self.connection.cursor(
            _query("facts"), asked, _endings(), prefetch=_AT_ONCE
        ):
            if root is None or row["root_id"] != root.id:
                if root is not None:
                    yield hold(root, facts, ended.get(root.id, ()))
                root, facts = _root(row), []
            facts.append(_fact(row))
        if root is not None:
            yield hold(root, facts, ended.get(root.id, ()))

    async def holding(self, execution_id: int, ended: Ends = NO_ENDS) -> RootHolding | None:
        """Return what one execution holds."""
        found = [holding async for holding in self.holdings([execution_id], ended)]
        return found[0] if found else None

    async def perhaps_due(self, grace: timedelta) -> list[int]:
        """Return the executions whose results may have come to their end."""
        rows = await self.connection.fetch(_query("perhaps_due"), self.now, self.now - grace)
        return [row["execution_id"] for row in rows]

    async def open_since(self) -> Mapping[str, datetime]:
        """Return when the oldest open execution of each organization began."""
        rows = await self.connection.fetch(_query("open_since"))
        return {folder_of(row["tenant_id"], row["organization_id"]): row["since"] for row in rows}

    async def workflows_ended(self, execution_ids: Collection[int]) -> Mapping[int, datetime]:
        """Return when the outermost execution around each of these ended, where it has."""
        if not execution_ids:
            return {}
        rows = await self.connection.fetch(
            _query("workflows_ended"), list(execution_ids), _endings()
        )
        return {row["execution_id"]: row["ended_at"] for row in rows}


class PostgresCollectorLog:
    """Reads with one connection of its own; `open_ledger` gives it."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold the collector's lock; Postgres lets it go when the connection ends."""
        if not await self._connection.fetchval(_LOCK):
            raise CollectorBusy
        try:
            yield
        finally:
            with suppress(*CONNECTION_LOST):
                await self._connection.execute(_UNLOCK)

    async def check_alone(self) -> None:
        """Look for the lock; it is gone with the connection that took it."""
        try:
            held = await self._connection.fetchval(_ALONE, timeout=_PATIENCE_S)
        except CONNECTION_LOST as error:
            raise LockLost from error
        if not held:
            raise LockLost

    async def log_id(self) -> str:
        """Return the name of this log."""
        return str(await self._connection.fetchval("SELECT log_id FROM noetl.payload_owner"))

    async def swept_ago(self) -> timedelta | None:
        """Return how long ago the last sweep ended, by the database's clock."""
        found: timedelta | None = await self._connection.fetchval(
            "SELECT clock_timestamp() - swept_at FROM noetl.payload_owner"
        )
        return found

    async def mark_swept(self) -> None:
        """Keep the database's time."""
        await self._connection.execute(
            "UPDATE noetl.payload_owner SET swept_at = clock_timestamp()"
        )

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[PostgresSnapshot]:
        """Look at the log in one transaction."""
        now = await self._connection.fetchval("SELECT clock_timestamp()")
        async with self._connection.transaction(isolation="repeatable_read", readonly=True):
            # With row security on, rows that are hidden must be an error, not missing references.
            await self._connection.execute("SET LOCAL row_security = off")
            yield PostgresSnapshot(now, self._connection)

    async def links(self, keys: Collection[str]) -> Mapping[str, Names]:
        """Return what payloads name that were read before."""
        rows = await self._connection.fetch(_LINKS, list(keys))
        return {row["key"]: Names(frozenset(row["links"]), frozenset(row["sure"])) for row in rows}

    async def remember(self, links: Mapping[str, Names]) -> None:
        """Keep what payloads name."""
        named = [orjson.dumps(sorted(one.links)).decode() for one in links.values()]
        sure = [orjson.dumps(sorted(one.sure)).decode() for one in links.values()]
        await self._connection.execute(_REMEMBER, list(links), named, sure)

    async def forget(self, keys: Collection[str]) -> None:
        """Drop what was kept of payloads that are gone."""
        await self._connection.execute(_FORGET, list(keys))


@asynccontextmanager
async def open_ledger(dsn: str) -> AsyncIterator[PostgresCollectorLog]:
    """Connect as the collector.

    Raises:
        LogUnavailable: Postgres cannot be reached, or is not migrated.
    """
    with connecting(LogUnavailable):
        connection = await asyncpg.connect(dsn, timeout=10)
    try:
        with translated(LogUnavailable, "read the log"):
            yield PostgresCollectorLog(connection)
    finally:
        await connection.close(timeout=10)


def _root(row: asyncpg.Record) -> RootState:
    return RootState(
        id=row["root_id"],
        type=row["root_type"],
        tenant_id=row["tenant_id"],
        organization_id=row["organization_id"],
        ended_at=row["ended_at"],
    )


def _fact(row: asyncpg.Record) -> Fact:
    text = row["texts"].encode()
    return Fact(
        seq=row["seq"],
        type=row["event_type"],
        step=row["node_name"],
        meta=orjson.loads(row["meta"]),
        digests=digests_in(text),
        sure=located_in(text, folder_of(row["tenant_id"], row["organization_id"])),
        own=row["own"],
    )
