"""Count of the database server's WAL syncs."""

from __future__ import annotations

import asyncio

import asyncpg

# A backend flushes its statistics at most once a second, and when it ends.
OPEN = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = $1"
SYNCS = "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'"


async def wal_syncs(dsn: str, *, after_all_of: str) -> int:
    """Return the server's count, once no session of that user is open."""
    connection = await asyncpg.connect(dsn)
    try:
        async with asyncio.timeout(60):
            while await connection.fetchval(OPEN, after_all_of):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return int(await connection.fetchval(SYNCS))
    finally:
        await connection.close()
