"""Creation of the log's partitions ahead of time."""

from __future__ import annotations

import asyncpg

from streams.log.errors import LogUnavailable
from streams.postgres import translated


async def make_ahead(dsn: str) -> int:
    """Create this month's partition and the next ones; return how many were new.

    Raises:
        LogUnavailable: the database cannot be reached, or was never migrated.
    """
    with translated(LogUnavailable, "create partitions ahead"):
        connection = await asyncpg.connect(dsn, timeout=10)
        try:
            return int(await connection.fetchval("SELECT noetl.ensure_partitions()"))
        finally:
            await connection.close()
