"""Wiring of audits and bundles: the log, its schemas, the tables and the payloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import asyncpg

from streams.app.log import open_pool, open_registry
from streams.app.retention import stored_log_of
from streams.events.codec import Codec
from streams.payload.objects.open import open_payloads
from streams.payload.port import PayloadStore
from streams.replay.audit.execution import ExecutionAudit
from streams.replay.audit.port import ProjectedRows
from streams.replay.audit.postgres import PostgresProjectedRows
from streams.replay.bundle.export import BundleSources
from streams.replay.postgres_children import PostgresChildren
from streams.replay.verified import VerifiedLog
from streams.schema.registry import SchemaRegistry
from streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Audits:
    """An open audit, and the tables that it reads."""

    audit: ExecutionAudit
    stored: ProjectedRows


@dataclass(frozen=True, slots=True)
class _Opened:
    registry: SchemaRegistry
    pool: asyncpg.Pool
    codec: Codec
    payloads: PayloadStore | None


@asynccontextmanager
async def open_audits(settings: Settings, *, payloads: bool) -> AsyncIterator[Audits]:
    """Open what an audit reads; `payloads`: and the payload store.

    Raises:
        LogUnavailable: Postgres cannot be reached.
        NoSuchBackend: the settings of the payload store are incomplete.
    """
    async with _open(settings, payloads=payloads) as opened:
        log = stored_log_of(opened.pool, opened.codec, settings)
        stored = PostgresProjectedRows(opened.pool)
        verified = VerifiedLog(log, opened.codec)
        yield Audits(ExecutionAudit(log, verified, stored, opened.payloads), stored)


@asynccontextmanager
async def open_bundle_sources(
    settings: Settings, *, payloads: bool, children: bool
) -> AsyncIterator[BundleSources]:
    """Open what export reads.

    Raises:
        LogUnavailable: Postgres cannot be reached.
        NoSuchBackend: the settings of the payload store are incomplete.
    """
    async with _open(settings, payloads=payloads) as opened:
        yield BundleSources(
            stored_log_of(opened.pool, opened.codec, settings),
            opened.registry,
            opened.codec,
            opened.payloads,
            PostgresChildren(opened.pool) if children else None,
        )


@asynccontextmanager
async def _open(settings: Settings, *, payloads: bool) -> AsyncIterator[_Opened]:
    dsn = settings.event_store.canonical_connection.dsn("read")
    limit_s = settings.runtime.call_limit_s
    async with AsyncExitStack() as opened:
        registry = await opened.enter_async_context(open_registry(settings))
        pool = await opened.enter_async_context(open_pool(dsn, limit_s=limit_s))
        store = await opened.enter_async_context(open_payloads(settings)) if payloads else None
        yield _Opened(registry, pool, await Codec.open(registry), store)
