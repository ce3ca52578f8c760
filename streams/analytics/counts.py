"""Numbers of events by tenant and type, of the log and of a Postgres sink."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import quote, urlencode

import asyncpg

from streams.analytics.errors import SinkUnavailable
from streams.postgres import connecting, translated
from streams.settings import Settings

Counts = Mapping[tuple[str, str], int]
"""Number of events by tenant and event type."""
TABLE = "event"
_GROUPED = "SELECT tenant_id, event_type, count(*) FROM {} WHERE position <= $1 GROUP BY 1, 2"
_IN_LOG, _IN_SINK = _GROUPED.format("noetl.event"), _GROUPED.format(TABLE)
_LAST = "SELECT coalesce(max(position), 0)::bigint FROM noetl.event"


def analytics_dsn(settings: Settings) -> str:
    """Build the connection string of the analytics database; never log it."""
    own, log = settings.analytics, settings.event_store.canonical_connection
    host, port = own.host or log.host, own.port or log.port
    who = f"{quote(own.user, safe='')}:{quote(own.password.get_secret_value(), safe='')}"
    query = urlencode({"sslmode": log.ssl_mode})
    return f"postgresql://{who}@{host}:{port}/{quote(own.database, safe='')}?{query}"


@asynccontextmanager
async def analytics_database(settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    """Connect to the analytics database.

    Raises:
        SinkUnavailable: it does not answer.
    """
    with connecting(SinkUnavailable):
        connection = await asyncpg.connect(analytics_dsn(settings), timeout=10)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def log_database(settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    """Connect to the log as a reader of all tenants."""
    dsn = settings.event_store.canonical_connection.dsn("mirror")
    with connecting(SinkUnavailable):
        connection = await asyncpg.connect(dsn, timeout=10)
    try:
        yield connection
    finally:
        await connection.close()


async def last_position(log: asyncpg.Connection) -> int:
    """Return the highest position of the log."""
    position: int = await log.fetchval(_LAST)
    return position


async def counts_of_log(log: asyncpg.Connection, until: int) -> Counts:
    """Count the events of the log up to a position."""
    return _counts(await log.fetch(_IN_LOG, until))


async def counts_of_table(settings: Settings, until: int) -> Counts:
    """Count the rows of the JDBC sink up to a position; none before its table exists."""
    async with analytics_database(settings) as database:
        if not await table_exists(database):
            return {}
        with translated(SinkUnavailable, "count the rows of the sink"):
            return _counts(await database.fetch(_IN_SINK, until))


async def empty_table(settings: Settings) -> None:
    """Delete all rows of the JDBC sink."""
    async with analytics_database(settings) as database:
        if await table_exists(database):
            with translated(SinkUnavailable, "empty the table of the sink"):
                await database.execute(f"TRUNCATE {TABLE}")


async def table_exists(database: asyncpg.Connection) -> bool:
    """Return whether the sink has created its table."""
    return await database.fetchval("SELECT to_regclass($1)", TABLE) is not None


def differences(log: Counts, sink: Counts) -> list[str]:
    """Describe each tenant and type whose numbers differ."""
    return [
        f"{tenant} {event_type}: {log.get((tenant, event_type), 0)} in the log, "
        f"{sink.get((tenant, event_type), 0)} in the sink"
        for tenant, event_type in sorted({*log, *sink})
        if log.get((tenant, event_type), 0) != sink.get((tenant, event_type), 0)
    ]


def _counts(rows: list[asyncpg.Record]) -> Counts:
    return {(row[0], row[1]): row[2] for row in rows}
