"""Wiring of retention: the log with its archives, and what archives them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import asyncpg

from streams.app.log import open_pool, open_registry
from streams.collector.postgres import open_ledger
from streams.events.codec import Codec
from streams.log.port import EventStore
from streams.payload.objects.open import open_payloads
from streams.replay.postgres import PostgresStoredLog
from streams.retention.event_store import ArchivedEventStore
from streams.retention.postgres import (
    CollectorHoldings,
    PostgresArchiveIndex,
    PostgresRetentionLog,
    open_retention_log,
)
from streams.retention.reading import ArchivedLog
from streams.retention.run import RetentionPorts
from streams.settings import Settings


def stored_log_of(pool: asyncpg.Pool, codec: Codec, settings: Settings) -> ArchivedLog:
    """Return the stored log behind a pool, with its archives."""
    index = PostgresArchiveIndex(pool)
    return ArchivedLog(PostgresStoredLog(pool), index, partial(open_payloads, settings), codec)


def event_store_of(
    log: EventStore, pool: asyncpg.Pool, codec: Codec, settings: Settings
) -> ArchivedEventStore:
    """Return the log as an event store, with its archives."""
    index = PostgresArchiveIndex(pool)
    return ArchivedEventStore(log, index, partial(open_payloads, settings), codec)


@asynccontextmanager
async def open_policies(settings: Settings) -> AsyncIterator[PostgresRetentionLog]:
    """Open policies and the list of archives.

    Raises:
        LogUnavailable: Postgres cannot be reached.
    """
    from streams.mirror.guard import SLOT  # loads Kafka's clients

    dsn = settings.event_store.canonical_connection.dsn("owner")
    async with open_retention_log(dsn, slot=SLOT) as log:
        yield log


@asynccontextmanager
async def open_retention(
    settings: Settings, *, slot: str | None = None
) -> AsyncIterator[RetentionPorts]:
    """Open what archives, as the only one on this log; `slot`: default the mirror's.

    Raises:
        RetentionBusy: another run is archiving.
        Unavailable: Postgres or the payload store cannot be reached.
    """
    from streams.mirror.guard import SLOT  # loads Kafka's clients

    database = settings.event_store.canonical_connection
    async with (
        open_registry(settings) as registry,
        open_pool(database.dsn("read"), limit_s=settings.runtime.call_limit_s) as pool,
        open_ledger(database.dsn("collect")) as ledger,
        open_payloads(settings) as store,
        open_retention_log(database.dsn("owner"), slot=slot or SLOT, exclusive=True) as log,
    ):
        codec = await Codec.open(registry)
        yield RetentionPorts(log, PostgresStoredLog(pool), codec, store, CollectorHoldings(ledger))
