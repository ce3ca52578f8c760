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
from streams.replay.organization import OrganizationReplay
from streams.replay.postgres import PostgresStoredLog
from streams.replay.state import Replay
from streams.replay.verified import VerifiedLog
from streams.settings import Settings


def replay_of(pool: asyncpg.Pool, codec: Codec, settings: Settings) -> Replay:
    """Return replay of the log behind a pool."""
    log = PostgresStoredLog(pool)
    offsets = KafkaOffsets(settings.event_store.connection.url)
    return Replay(log, VerifiedLog(log, codec), SystemClock(), offsets)


def organization_replay_of(
    pool: asyncpg.Pool, codec: Codec, settings: Settings
) -> OrganizationReplay:
    """Return replay of whole organizations of the log behind a pool."""
    log = PostgresStoredLog(pool)
    return OrganizationReplay(log, log, replay_of(pool, codec, settings))


@asynccontextmanager
async def open_organization_replay(settings: Settings) -> AsyncIterator[OrganizationReplay]:
    """Open replay of organizations for reading.

    Raises:
        LogUnavailable: Postgres cannot be reached.
    """
    async with _open(settings) as (pool, codec):
        yield organization_replay_of(pool, codec, settings)


@asynccontextmanager
async def open_replay(settings: Settings) -> AsyncIterator[Replay]:
    """Open replay for reading.

    Raises:
        LogUnavailable: Postgres cannot be reached.
    """
    async with _open(settings) as (pool, codec):
        yield replay_of(pool, codec, settings)


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[tuple[asyncpg.Pool, Codec]]:
    dsn = settings.event_store.canonical_connection.dsn("read")
    limit_s = settings.runtime.call_limit_s
    async with open_registry(settings) as registry, open_pool(dsn, limit_s=limit_s) as pool:
        yield pool, await Codec.open(registry)


@asynccontextmanager
async def open_snapshot_store(settings: Settings) -> AsyncIterator[ProjectionStore]:
    """Open the store of snapshots for writing.

    Raises:
        ProjectionsUnavailable: Postgres cannot be reached.
    """
    dsn = settings.event_store.canonical_connection.dsn("project")
    async with open_pool(dsn, limit_s=settings.runtime.call_limit_s) as pool:
        yield PostgresProjections(pool)
