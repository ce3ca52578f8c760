"""Partitions of the log, made before anybody needs them."""

from __future__ import annotations

import asyncpg

from streams.log.append_connection import CONNECTION_LOST
from streams.log.errors import LogUnavailable


async def make_ahead(dsn: str) -> int:
    """Make this month's partition and the next ones; return how many were new.

    Raises:
        LogUnavailable: the database cannot be reached, or was never migrated.
    """
    try:
        connection = await asyncpg.connect(dsn, timeout=10)
        try:
            return int(await connection.fetchval("SELECT noetl.ensure_partitions()"))
        finally:
            await connection.close()
    except (*CONNECTION_LOST, asyncpg.PostgresError) as error:
        raise LogUnavailable(f"no partitions could be made ahead: {error!r}") from error
