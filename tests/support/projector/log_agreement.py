"""Do the projections agree with the log? The log is folded again and its rows are compared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import orjson

from streams.app import open_log, open_pool
from streams.projector.postgres import PostgresProjections
from streams.projector.rows import Changes
from streams.projector.views import Views, by_root
from streams.settings import Settings
from tests.support.log.databases import dsn, root_events

TABLES = ("execution", "stage", "frame", "command")
Rows = dict[str, list[Any]]


async def live_and_folded(settings: Settings, execution_id: int, seq: int) -> tuple[Rows, Rows]:
    """Wait until the projector has seen `seq`; return its rows, and those the log says."""
    async with open_log(settings, role="test", lanes=1) as log:
        events = await root_events(log.store, execution_id)
        changes = (await Views(log.store).fold(by_root(events))).changes
    async with open_pool(dsn(settings, "project")) as pool:
        await _until_seen(pool, execution_id, seq)
        return await _rows(pool, execution_id), await _folded(pool, execution_id, changes)


async def _until_seen(pool: asyncpg.Pool, execution_id: int, seq: int) -> None:
    sql = "SELECT last_seq FROM noetl.execution WHERE execution_id = $1"
    async with asyncio.timeout(90):
        while await pool.fetchval(sql, execution_id) != seq:  # noqa: ASYNC110 - a table has no event
            await asyncio.sleep(0.1)


async def _folded(pool: asyncpg.Pool, execution_id: int, changes: Changes) -> Rows:
    """Save the rows into emptied tables, read them, and leave the tables as they were."""
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            for table in TABLES:
                emptied = f"DELETE FROM noetl.{table} WHERE execution_id = $1"
                await connection.execute(emptied, execution_id)
            await PostgresProjections(_Within(connection)).save(changes, ())
            return await _rows(connection, execution_id)
        finally:
            await transaction.rollback()


class _Within:
    """A pool of one connection, whose transaction is still open."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Any]:
        yield self._connection


async def _rows(source: Any, execution_id: int) -> Rows:
    found = {}
    for table in TABLES:
        sql = f"SELECT to_jsonb(t) FROM noetl.{table} t WHERE execution_id = $1 ORDER BY {table}_id"
        found[table] = [orjson.loads(row[0]) for row in await source.fetch(sql, execution_id)]
    return found
