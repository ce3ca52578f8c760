"""Process of the API: opens its ports and serves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import asyncpg
import orjson

from streams.api.postgres import PostgresProjectionReader
from streams.api.runtime import ApiRuntime
from streams.api.server import serving
from streams.app import (
    Log,
    business_queries_of,
    business_replay_of,
    catalog_of,
    credentials_of,
    event_store_of,
    forks_of,
    keys_of,
    open_log,
    open_pool,
    open_registry,
    open_routes,
    open_tiers,
    operator_token_of,
    organization_replay_of,
    providers_of,
    replay_of,
    subscription_secrets_of,
    subscriptions_of,
    trigger_ledger_of,
    worker_token_of,
)
from streams.clock import SystemClock
from streams.credential.resolve import Resolver
from streams.data_folder import layout_of, write_private
from streams.metrics.exposition import RoleMetrics
from streams.metrics.roles import API
from streams.payload.port import PayloadStore, Scope
from streams.payload.tiers.tiered_store import TieredPayloads
from streams.roles.start import role_folder
from streams.roles.tier_stats import writing_tier_stats
from streams.schema.registry import SchemaRegistry
from streams.settings import Settings
from streams.subscription.bodies import BodyReader
from streams.trigger.catalog import CatalogPlaybooks
from streams.trigger.entries import EntryPorts
from streams.trigger.subscriptions.port import SubscriptionLedger
from streams.trigger.subscriptions.starting import FixedTopicId
from streams.trigger.subscriptions.webhook import WebhookReceiver


async def run(
    settings: Settings, data: Path, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Serve until `stop` is set; `roles/<name>.json` in the data folder has the address."""
    address = layout_of(data).address(settings.runtime.shard_id)
    where = settings.api
    metrics = RoleMetrics(API, settings.runtime.shard_id)
    async with (
        open_runtime(settings, role_folder(settings, data), metrics) as runtime,
        serving(runtime, host=where.host, port=where.port or 0, metrics=metrics) as url,
    ):
        write_private(address, orjson.dumps({"url": url, "pid": os.getpid()}))
        try:
            ready()
            await stop.wait()
        finally:
            address.unlink(missing_ok=True)


@asynccontextmanager
async def open_runtime(
    settings: Settings, folder: Path | None = None, metrics: RoleMetrics | None = None
) -> AsyncIterator[ApiRuntime]:
    """Open the API's dependencies; the stats of its tiers are written to `folder`.

    Raises:
        Unavailable: the database or the payload store cannot be reached.
    """
    async with (
        open_log(settings, role="api", lanes=1, metrics=metrics) as log,
        _open_tiers(settings, folder, metrics) as payloads,
        _open_reads(settings, metrics) as (pool, registry),
        open_routes(settings) as routes,
    ):
        credentials, keys = credentials_of(log, settings), keys_of(settings)
        catalog, ledger = catalog_of(log, payloads), trigger_ledger_of(log, settings, "api")
        yield ApiRuntime(
            log=event_store_of(log.store, pool, log.codec, settings),
            projections=PostgresProjectionReader(pool),
            ledger=ledger,
            catalog=catalog,
            payloads=payloads,
            replay=replay_of(pool, log.codec, settings),
            organizations=organization_replay_of(pool, log.codec, settings),
            business_replay=business_replay_of(pool, log.codec, settings, payloads),
            business=business_queries_of(pool, routes),
            forks=forks_of(pool, log.codec, catalog, payloads),
            next_id=log.ids.next,
            clock=SystemClock(),
            scope=_scope(settings),
            lease_seconds=settings.frames.lease_seconds,
            inline_bytes=settings.payload_store.threshold_bytes,
            credentials=credentials,
            keys=keys,
            resolver=Resolver(credentials, keys, catalog, providers_of(settings)),
            worker_token=worker_token_of(settings),
            operator_token=operator_token_of(settings),
            webhooks=webhook_receiver(settings, log, payloads, registry, ledger),
            configured_credentials=frozenset(settings.credentials),
        )


@asynccontextmanager
async def _open_reads(
    settings: Settings, metrics: RoleMetrics | None
) -> AsyncIterator[tuple[asyncpg.Pool, SchemaRegistry]]:
    dsn = settings.event_store.canonical_connection.dsn("read")
    async with open_pool(dsn, metrics=metrics) as pool, open_registry(settings) as registry:
        yield pool, registry


def _scope(settings: Settings) -> Scope:
    return Scope(settings.runtime.tenant_id, settings.runtime.organization_id)


@asynccontextmanager
async def _open_tiers(
    settings: Settings, folder: Path | None, metrics: RoleMetrics | None
) -> AsyncIterator[TieredPayloads]:
    async with (
        open_tiers(settings, consumer="api", metrics=metrics) as payloads,
        writing_tier_stats(payloads, folder) if folder is not None else nullcontext(),
    ):
        yield payloads


def webhook_receiver(
    settings: Settings,
    log: Log,
    payloads: PayloadStore,
    registry: SchemaRegistry,
    ledger: SubscriptionLedger,
) -> WebhookReceiver:
    """Return the receiver of all webhooks of a log."""
    return WebhookReceiver(
        subscriptions_of(log, payloads),
        subscription_secrets_of(log, settings),
        ledger,
        EntryPorts(
            playbooks=CatalogPlaybooks(catalog_of(log, payloads)),
            topic_ids=FixedTopicId("http"),
            payloads=payloads,
            take_ids=log.ids.take,
            clock=SystemClock(),
        ),
        BodyReader(registry),
        inline_bytes=settings.payload_store.threshold_bytes,
    )
