"""Wiring of replay: the stored log, and Kafka's offsets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from streams.app.log import open_pool, open_registry
from streams.app.payloads import open_tiers
from streams.app.projection_stores import open_routes
from streams.app.retention import stored_log_of
from streams.catalog.texts import RegisteredTexts
from streams.clock import SystemClock
from streams.events.codec import Codec
from streams.log.postgres import PostgresEventStore
from streams.payload.tiers.tiered_store import TieredPayloads
from streams.projector.business.declared import Declared
from streams.projector.business.plugins import installed
from streams.projector.business.postgres import PostgresBusiness
from streams.projector.business.reading import BusinessQueries
from streams.projector.port import ProjectionStore
from streams.projector.postgres import PostgresProjections
from streams.projector.stores.routed import NO_ROUTES, ReadableRoutes, RoutedStates, Routes
from streams.replay.business import BusinessReplay
from streams.replay.kafka import KafkaOffsets
from streams.replay.organization import OrganizationReplay
from streams.replay.parity import BusinessParity
from streams.replay.parity_business import ReplayedBusinessParity
from streams.replay.postgres import PostgresStoredLog
from streams.replay.state import Replay
from streams.replay.verified import VerifiedLog
from streams.settings import Settings


def replay_of(pool: asyncpg.Pool, codec: Codec, settings: Settings) -> Replay:
    """Return replay of the log behind a pool."""
    log = stored_log_of(pool, codec, settings)
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


def business_replay_of(
    pool: asyncpg.Pool, codec: Codec, settings: Settings, payloads: TieredPayloads
) -> BusinessReplay:
    """Return replay of business projections, which reads payloads too."""
    texts = RegisteredTexts(PostgresEventStore(None, pool, codec), payloads)
    events = VerifiedLog(stored_log_of(pool, codec, settings), codec)
    declared = Declared(texts, installed(), PostgresBusiness(pool), with_building=False)
    return BusinessReplay(replay_of(pool, codec, settings), events, declared, payloads)


def business_queries_of(pool: asyncpg.Pool, routes: Routes = NO_ROUTES) -> BusinessQueries:
    """Return the queries of business projections."""
    return BusinessQueries(ReadableRoutes(PostgresBusiness(pool), routes), installed())


@asynccontextmanager
async def open_business_replay(settings: Settings) -> AsyncIterator[BusinessReplay]:
    """Open replay of business projections for reading.

    Raises:
        Unavailable: Postgres or the payload store cannot be reached.
    """
    async with (
        _open(settings) as (pool, codec),
        open_tiers(settings, consumer="replay") as payloads,
    ):
        yield business_replay_of(pool, codec, settings, payloads)


@asynccontextmanager
async def open_business_parity(settings: Settings) -> AsyncIterator[BusinessParity]:
    """Open the comparison of business projections with a replay.

    Raises:
        Unavailable: Postgres or the payload store cannot be reached.
    """
    async with (
        _open(settings) as (pool, codec),
        open_routes(settings) as routes,
        open_tiers(settings, consumer="replay") as payloads,
    ):
        replay = business_replay_of(pool, codec, settings, payloads)
        yield ReplayedBusinessParity(replay, RoutedStates(PostgresBusiness(pool), routes))


@asynccontextmanager
async def open_business_queries(settings: Settings) -> AsyncIterator[BusinessQueries]:
    """Open the queries of business projections.

    Raises:
        LogUnavailable: Postgres cannot be reached.
    """
    dsn = settings.event_store.canonical_connection.dsn("read")
    limit_s = settings.runtime.call_limit_s
    async with open_pool(dsn, limit_s=limit_s) as pool, open_routes(settings) as routes:
        yield business_queries_of(pool, routes)


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
