"""Wiring of the log in Postgres, its registry and catalog."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import aiohttp
import asyncpg

from streams.catalog.catalog import Catalog
from streams.catalog.postgres import PostgresCatalogEvents, PostgresSubscriptionEvents
from streams.catalog.subscriptions import Subscriptions
from streams.clock import SystemClock
from streams.events.codec import Codec
from streams.events.locator import Locator
from streams.ids import Snowflakes
from streams.log.append_counts import AppendCounts
from streams.log.appender import LANES, Appender
from streams.log.errors import LogUnavailable
from streams.log.measured_pool import MeasuredPool
from streams.log.postgres import PostgresEventStore
from streams.log.worker_ids import hold_worker_id
from streams.metrics.exposition import RoleMetrics
from streams.payload.port import PayloadStore
from streams.postgres import BoundedConnection, connecting
from streams.resources import folder
from streams.retry import CALL_LIMIT_S
from streams.schema.registry import FileRegistry, SchemaRegistry
from streams.schema.registry_external import ExternalRegistry, RegistryClient
from streams.schema.registry_postgres import DatabaseRegistry
from streams.settings import Settings
from streams.trigger.postgres import PostgresTriggerLedger


@dataclass(frozen=True, slots=True)
class Log:
    """An open log: the store, its id generator, and the codec of its envelopes."""

    store: PostgresEventStore
    ids: Snowflakes
    codec: Codec
    pool: asyncpg.Pool
    sealer: str
    """The implementation that seals events: native or python."""
    counts: AppendCounts


@asynccontextmanager
async def open_log(
    settings: Settings, *, role: str, lanes: int = LANES, metrics: RoleMetrics | None = None
) -> AsyncIterator[Log]:
    """Open the log for appending and reading, as a process of this role.

    Raises:
        LogUnavailable: Postgres cannot be reached.
        ClockSkew: this machine's clock is too far off.
    """
    database = settings.event_store.canonical_connection
    limits = settings.runtime
    async with (
        open_registry(settings) as registry,
        open_pool(
            database.dsn("append"), limit_s=limits.call_limit_s, name="log", metrics=metrics
        ) as pool,
    ):
        codec = await Codec.open(registry)
        holder = f"{settings.runtime.node_id}/{os.getpid()}/{uuid4().hex}"
        async with hold_worker_id(pool, SystemClock(), holder) as lease:
            ids = Snowflakes(SystemClock(), lease)
            async with Appender(
                database.dsn("append"),
                codec=codec,
                take_ids=ids.take,
                producer=producer(settings, role),
                lanes=lanes,
                give_up_after_s=limits.append_limit_s,
            ) as appender:
                if metrics is not None:
                    metrics.add(appender.counts.samples)
                store = PostgresEventStore(appender, pool, codec)
                yield Log(store, ids, codec, pool, appender.sealer, appender.counts)


def catalog_of(log: Log, payloads: PayloadStore | None = None) -> Catalog:
    """Return the catalog in a log; playbooks too long for an event need the payload store."""
    return Catalog(
        log.store,
        PostgresCatalogEvents(log.pool, log.codec),
        next_id=log.ids.next,
        clock=SystemClock(),
        payloads=payloads,
    )


def subscriptions_of(log: Log, payloads: PayloadStore | None = None) -> Subscriptions:
    """Return the subscriptions in a log."""
    return Subscriptions(
        log.store,
        PostgresCatalogEvents(log.pool, log.codec),
        PostgresSubscriptionEvents(log.pool, log.codec),
        catalog_of(log, payloads),
        SystemClock(),
    )


def trigger_ledger_of(log: Log, settings: Settings, role: str) -> PostgresTriggerLedger:
    """Return the trigger ledger beside a log; `role` is the producer of its events."""
    return PostgresTriggerLedger(
        log.pool, codec=log.codec, take_ids=log.ids.take, producer=producer(settings, role)
    )


def producer(settings: Settings, role: str) -> str:
    """Return the `producer` locator of events that this process writes in `role`."""
    runtime = settings.runtime
    place = Locator(
        runtime.tenant_id,
        runtime.organization_id,
        cluster=runtime.cluster_id,
        region=runtime.region,
        zone=runtime.zone,
        node=runtime.node_id,
        process=str(os.getpid()),
    )
    return str(place.thing(role, runtime.shard_id))


@asynccontextmanager
async def open_registry(settings: Settings) -> AsyncIterator[SchemaRegistry]:
    """Open the configured schema registry."""
    chosen = settings.serialization.schema_registry
    if chosen.backend == "db":
        dsn, limit_s = (
            settings.event_store.canonical_connection.dsn("append"),
            settings.runtime.call_limit_s,
        )
        async with open_pool(dsn, limit_s=limit_s) as pool:
            yield DatabaseRegistry(pool)
    elif chosen.backend == "external":
        assert chosen.url is not None
        async with aiohttp.ClientSession() as session:
            yield ExternalRegistry(RegistryClient(chosen.url, session))
    else:
        yield FileRegistry(Path(chosen.path) if chosen.path else folder("avro_schemas"))


@asynccontextmanager
async def open_pool(
    dsn: str,
    *,
    limit_s: float = CALL_LIMIT_S,
    name: str = "read",
    metrics: RoleMetrics | None = None,
) -> AsyncIterator[asyncpg.Pool]:
    """Open a small connection pool; statements time out after `limit_s`.

    Its depth is added to the process's metrics, under `name`.

    Raises:
        LogUnavailable: Postgres cannot be reached.
    """
    with connecting(LogUnavailable):
        # Two: the connections of all roles together must fit a small server.
        pool = await MeasuredPool(
            dsn,
            name=name,
            min_size=1,
            max_size=2,
            timeout=min(10, limit_s),
            command_timeout=limit_s,
            connection_class=BoundedConnection,
        )
    if metrics is not None:
        metrics.add(pool.samples)
    async with pool:
        yield pool
