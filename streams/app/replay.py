"""Wiring of replay: the stored log, and Kafka's offsets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from streams.app.log import open_pool, open_registry
from streams.clock import SystemClock
from streams.events.codec import Codec
from streams.projector.port import ProjectionStore
from streams.projector.postgres import PostgresProjections
from streams.replay.kafka import KafkaOffsets
from streams.replay.postgres import PostgresStoredLog
from streams.replay.state import Replay
from streams.replay.verified import VerifiedLog
from streams.settings import Settings


def replay_of(pool: asyncpg.Pool, codec: Codec, settings: Settings) -> Replay:
    """Return replay of the log behind a pool."""
    log = PostgresStoredLog(pool)
    offsets = KafkaOffsets(settings.event_store.connection.url)
    return Replay(log, VerifiedLog(log, codec), SystemClock(), offsets)


@asynccontextmanager
async def open_replay(settings: Settings) -> AsyncIterator[Replay]:
    """Open replay for reading.

    Raises:
        LogUnavailable: Postgres cannot be reached.
    """
    dsn = settings.event_store.canonical_connection.dsn("read")
    limit_s = settings.runtime.call_limit_s
    async with open_registry(settings) as registry, open_pool(dsn, limit_s=limit_s) as pool:
        yield replay_of(pool, await Codec.open(registry), settings)


@asynccontextmanager
async def open_snapshot_store(settings: Settings) -> AsyncIterator[ProjectionStore]:
    """Open the store of snapshots for writing.

    Raises:
        ProjectionsUnavailable: Postgres cannot be reached.
    """
    dsn = settings.event_store.canonical_connection.dsn("project")
    async with open_pool(dsn, limit_s=settings.runtime.call_limit_s) as pool:
        yield PostgresProjections(pool)
