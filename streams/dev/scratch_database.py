"""Temporary databases for benches and tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg

from streams.log.migrate import migrate
from streams.settings import Settings


@asynccontextmanager
async def scratch_database(
    settings: Settings, *, migrated: bool = True, like: Settings | None = None
) -> AsyncIterator[Settings]:
    """Yield settings that name a new database, which is dropped afterwards.

    A copy of the database that `like` names has its schema already; nobody may be connected
    to that one meanwhile.
    """
    name = f"scratch_{uuid4().hex}"
    template = f" TEMPLATE {like.event_store.canonical_connection.database}" if like else ""
    await _execute(settings, f"CREATE DATABASE {name}{template}")
    try:
        own = settings.with_database(name)
        if migrated and like is None:
            await migrate(own.event_store.canonical_connection.dsn("owner"))
        yield own
    finally:
        # Postgres waits briefly for connections that are closing; it may not terminate them,
        # because they can be another role's.
        await _execute(settings, f"DROP DATABASE {name}")


async def _execute(settings: Settings, sql: str) -> None:
    """Reconnect each time: the server may have been killed."""
    connection = await asyncpg.connect(settings.event_store.canonical_connection.dsn("owner"))
    try:
        await connection.execute(sql)
    finally:
        await connection.close()
