"""Wiring of bundles: the log, its schemas, its payloads and the children of executions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from streams.app.log import open_pool, open_registry
from streams.events.codec import Codec
from streams.payload.objects.open import open_payloads
from streams.replay.bundle.export import BundleSources
from streams.replay.postgres import PostgresStoredLog
from streams.replay.postgres_children import PostgresChildren
from streams.settings import Settings


@asynccontextmanager
async def open_bundle_sources(
    settings: Settings, *, payloads: bool, children: bool
) -> AsyncIterator[BundleSources]:
    """Open what export reads.

    Raises:
        LogUnavailable: Postgres cannot be reached.
        NoSuchBackend: the settings of the payload store are incomplete.
    """
    dsn = settings.event_store.canonical_connection.dsn("read")
    limit_s = settings.runtime.call_limit_s
    async with AsyncExitStack() as opened:
        registry = await opened.enter_async_context(open_registry(settings))
        pool = await opened.enter_async_context(open_pool(dsn, limit_s=limit_s))
        store = await opened.enter_async_context(open_payloads(settings)) if payloads else None
        yield BundleSources(
            PostgresStoredLog(pool),
            registry,
            await Codec.open(registry),
            store,
            PostgresChildren(pool) if children else None,
        )
