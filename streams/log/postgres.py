"""The log in Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping, Sequence

import asyncpg

from streams.events.catalogue import catalogue
from streams.events.codec import Codec
from streams.events.model import Event, NewEvent, Root
from streams.ids import siblings_of
from streams.log.appender import Appender
from streams.log.errors import LogUnavailable
from streams.log.port import Frontier, Receipt
from streams.log.rows import assigned
from streams.postgres import queries, translated

PAGE = 1000
FOLLOW_PAUSE_S = 0.05
query = queries("streams.log")


class PostgresEventStore:
    """Appends through a shared appender; reads through a small pool of its own."""

    def __init__(self, appender: Appender | None, pool: asyncpg.Pool, codec: Codec) -> None:
        self._appender, self._pool, self._codec = appender, pool, codec

    def append(self, batch: Sequence[NewEvent]) -> Coroutine[object, object, Receipt]:
        """Append a batch and return once it is durable."""
        if self._appender is None:
            raise LogUnavailable("this store was opened for reading only")
        return self._appender.append(batch)

    async def read_root(
        self, root: Root, *, after_seq: int = 0, through_seq: int | None = None
    ) -> AsyncIterator[Event]:
        """Yield a root's events in `seq` order, a page at a time."""
        while True:
            rows = await self._fetch(
                query("read_root"), root.id, root.type, after_seq, through_seq, PAGE
            )
            for row in rows:
                yield await self._event(row)
            if len(rows) < PAGE:
                return
            after_seq = rows[-1]["seq"]

    async def open_roots(self, root_type: str) -> Mapping[int, int]:
        """Return the roots of this type that have not ended, with their last `seq`."""
        rows = await self._fetch(query("open_roots"), root_type)
        return {row["root_id"]: row["seq"] for row in rows}

    async def suspended_executions(self, among: Collection[int] | None = None) -> Mapping[int, int]:
        """Return the suspended executions, of all or `among` some, and since which `seq`."""
        ids = None if among is None else list(among)
        rows = await self._fetch(query("suspended_executions"), ids)
        return {row["root_id"]: row["seq"] for row in rows}

    async def open_children(self, execution_id: int) -> Sequence[int]:
        """Return the open child executions of this one."""
        lowest, highest = siblings_of(execution_id)
        rows = await self._fetch(query("open_children"), lowest, highest, execution_id)
        return [row["root_id"] for row in rows]

    async def endings(self, execution_ids: Sequence[int]) -> Mapping[int, Event]:
        """Return the event that ended each of these."""
        rows = await self._fetch(query("endings"), list(execution_ids), list(catalogue().endings))
        return {row["root_id"]: await self._event(row) for row in rows}

    async def read_stream(
        self, root: Root, stream_id: str, *, after_version: int = 0
    ) -> AsyncIterator[Event]:
        """Yield a stream's events in version order."""
        while True:
            rows = await self._fetch(
                query("read_stream"), root.id, root.type, stream_id, after_version, PAGE
            )
            for row in rows:
                yield await self._event(row)
            if len(rows) < PAGE:
                return
            after_version = rows[-1]["stream_version"]

    async def read_log(
        self, after: Frontier, *, limit: int = PAGE
    ) -> tuple[Sequence[Event], Frontier]:
        """Return events after `after` across all roots, and the new frontier."""
        rows = await self._fetch(query("read_log"), str(after.xid), after.position, limit)
        if not rows:
            return (), after
        events = [await self._event(row) for row in rows]
        return events, Frontier(int(rows[-1]["xid"]), rows[-1]["position"])

    async def follow(self, after: Frontier) -> AsyncIterator[tuple[Event, Frontier]]:
        """Yield events of all roots after `after`, and wait for more at the end."""
        while True:
            rows = await self._fetch(query("read_log"), str(after.xid), after.position, PAGE)
            for row in rows:
                after = Frontier(int(row["xid"]), row["position"])
                yield await self._event(row), after
            if not rows:
                await asyncio.sleep(FOLLOW_PAUSE_S)

    async def _event(self, row: asyncpg.Record) -> Event:
        await self._codec.learn(row["envelope"])
        return self._codec.decode(row["envelope"], assigned(row))

    async def _fetch(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        with translated(LogUnavailable, "read the log"):
            return list(await self._pool.fetch(sql, *arguments))
