"""The collector's view of the log in Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg
import orjson

from streams.collector.core import (
    READ_TYPES,
    EventExtract,
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
from streams.events.reading import RoutingFields
from streams.events.types import typed
from streams.log.errors import LogUnavailable
from streams.postgres import CONNECTION_LOST, connecting, queries, translated

_query = queries("streams.collector")
_BATCH = 1000
_LOCK_CHECK_LIMIT_S = 10
_LOCK = "SELECT pg_try_advisory_lock(hashtext('noetl.collector'))"
_UNLOCK = "SELECT pg_advisory_unlock(hashtext('noetl.collector'))"
_HOLDS_LOCK = (
    "SELECT EXISTS (SELECT FROM pg_locks "
    "WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted)"
)
_LINKS = "SELECT key, links, sure FROM noetl.payload_link WHERE key = ANY($1)"
_STORE_LINKS = (
    "INSERT INTO noetl.payload_link (key, links, sure) "
    "SELECT key, ARRAY(SELECT jsonb_array_elements_text(links)), "
    "ARRAY(SELECT jsonb_array_elements_text(sure)) "
    "FROM unnest($1::text[], $2::jsonb[], $3::jsonb[]) AS new (key, links, sure) "
    "ON CONFLICT DO NOTHING"
)
_DELETE_LINKS = "DELETE FROM noetl.payload_link WHERE key = ANY($1)"


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
        """Yield the holding of each root; the events are sorted by root.

        What is archived is never due: it is the holding of a root of its own.
        """
        root: RootState | None = None
        extracts: list[EventExtract] = []
        roots = None if execution_ids is None else list(execution_ids)
        async for row in self.connection.cursor(
            _query("event_extracts"), roots, _endings(), prefetch=_BATCH
        ):
            if root is None or row["root_id"] != root.id:
                if root is not None:
                    yield hold(root, extracts, ended.get(root.id, ()))
                root, extracts = _root(row), []
            extracts.append(_extract(row))
        if root is not None:
            yield hold(root, extracts, ended.get(root.id, ()))
        if roots is None:
            async for row in self.connection.cursor(_query("archived"), prefetch=_BATCH):
                yield _archived(row)

    async def holding(self, execution_id: int, ended: Ends = NO_ENDS) -> RootHolding | None:
        """Return the holding of one execution."""
        found = [holding async for holding in self.holdings([execution_id], ended)]
        return found[0] if found else None

    async def perhaps_due(self, grace: timedelta) -> list[int]:
        """Return the executions whose results may be due."""
        rows = await self.connection.fetch(_query("perhaps_due"), self.now, self.now - grace)
        return [row["execution_id"] for row in rows]

    async def open_since(self) -> Mapping[str, datetime]:
        """Return the start of the oldest open execution of each organization."""
        rows = await self.connection.fetch(_query("open_since"))
        return {folder_of(row["tenant_id"], row["organization_id"]): row["since"] for row in rows}

    async def workflows_ended(self, execution_ids: Collection[int]) -> Mapping[int, datetime]:
        """Return the end of the outermost execution around each of these, if it ended."""
        if not execution_ids:
            return {}
        rows = await self.connection.fetch(
            _query("workflows_ended"), list(execution_ids), _endings()
        )
        return {row["execution_id"]: row["ended_at"] for row in rows}


class PostgresCollectorLog:
    """Reads with its own connection, from `open_ledger`."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Hold the collector's lock; Postgres releases it when the connection ends."""
        if not await self._connection.fetchval(_LOCK):
            raise CollectorBusy
        try:
            yield
        finally:
            with suppress(*CONNECTION_LOST):
                await self._connection.execute(_UNLOCK)

    async def check_lock(self) -> None:
        """Check that the connection still holds the lock."""
        try:
            held = await self._connection.fetchval(_HOLDS_LOCK, timeout=_LOCK_CHECK_LIMIT_S)
        except CONNECTION_LOST as error:
            raise LockLost from error
        if not held:
            raise LockLost

    async def log_id(self) -> str:
        """Return the id of this log."""
        return str(await self._connection.fetchval("SELECT log_id FROM noetl.payload_owner"))

    async def swept_ago(self) -> timedelta | None:
        """Return the time since the last sweep, by the database's clock."""
        found: timedelta | None = await self._connection.fetchval(
            "SELECT clock_timestamp() - swept_at FROM noetl.payload_owner"
        )
        return found

    async def mark_swept(self) -> None:
        """Record a sweep at the database's time."""
        await self._connection.execute(
            "UPDATE noetl.payload_owner SET swept_at = clock_timestamp()"
        )

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[PostgresSnapshot]:
        """Open a snapshot of the log in one transaction."""
        now = await self._connection.fetchval("SELECT clock_timestamp()")
        async with self._connection.transaction(isolation="repeatable_read", readonly=True):
            # Rows hidden by row security must be an error, not missing references.
            await self._connection.execute("SET LOCAL row_security = off")
            yield PostgresSnapshot(now, self._connection)

    async def links(self, keys: Collection[str]) -> Mapping[str, Names]:
        """Return the stored links of payloads."""
        rows = await self._connection.fetch(_LINKS, list(keys))
        return {row["key"]: Names(frozenset(row["links"]), frozenset(row["sure"])) for row in rows}

    async def store_links(self, links: Mapping[str, Names]) -> None:
        """Store the links of payloads."""
        named = [orjson.dumps(sorted(one.links)).decode() for one in links.values()]
        sure = [orjson.dumps(sorted(one.sure)).decode() for one in links.values()]
        await self._connection.execute(_STORE_LINKS, list(links), named, sure)

    async def delete_links(self, keys: Collection[str]) -> None:
        """Delete the links of deleted payloads."""
        await self._connection.execute(_DELETE_LINKS, list(keys))


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


def _archived(row: asyncpg.Record) -> RootHolding:
    """Return the holding of an archived execution, or of the objects of an archive."""
    text = row["payloads"].encode()
    folder = folder_of(row["tenant_id"], row["organization_id"])
    expired = digests_in(row["expired"].encode())
    return RootHolding(_root(row), digests_in(text), located_in(text, folder), expired)


def _extract(row: asyncpg.Record) -> EventExtract:
    text, kind = row["texts"].encode(), row["event_type"]
    event = None
    if kind in READ_TYPES:
        event = typed(
            RoutingFields(
                kind,
                orjson.loads(row["meta"]),
                row["node_name"],
                schema_version=row["schema_version"],
            )
        )
    return EventExtract(
        seq=row["seq"],
        event=event,
        digests=digests_in(text),
        sure=located_in(text, folder_of(row["tenant_id"], row["organization_id"])),
        own=row["own"],
        event_id=row["event_id"],
    )
