"""Rebuild of the projections, of all roots or of one execution."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from streams.app import event_store_of, open_pool, open_registry, open_routes, open_tiers
from streams.catalog.texts import RegisteredTexts
from streams.errors import Refused
from streams.events.codec import Codec
from streams.log.port import EventStore
from streams.log.postgres import PostgresEventStore
from streams.projector.business.declared import Declared
from streams.projector.business.fold import BusinessFolds
from streams.projector.business.plugins import installed
from streams.projector.business.postgres import PostgresBusiness
from streams.projector.business.rebuilt import FoldsOf
from streams.projector.heads import PostgresRootHeads, RootTotals
from streams.projector.outputs import Outputs
from streams.projector.postgres import PostgresProjections
from streams.projector.rebuild import OnRebuild, RebuildProgress, rebuild
from streams.projector.stores.routed import RoutedProjections
from streams.settings import Settings


class NoSuchRoot(Refused):
    """There is no such execution in the log."""


class _Ports(NamedTuple):
    heads: PostgresRootHeads
    log: EventStore
    tables: PostgresProjections
    store: RoutedProjections
    business: FoldsOf


async def rebuild_totals(settings: Settings, execution_id: int | None = None) -> RootTotals:
    """Return how many roots and events a rebuild folds.

    Raises:
        NoSuchRoot: there is no such execution.
        Unavailable: Postgres cannot be reached.
    """
    async with open_pool(settings.event_store.canonical_connection.dsn("project")) as pool:
        return await _totals(PostgresRootHeads(pool, execution_id), execution_id)


async def rebuild_projections(
    settings: Settings, report: OnRebuild | None = None, execution_id: int | None = None
) -> RebuildProgress:
    """Replace all rows, or those of one execution; the live projector may go on.

    Raises:
        NoSuchRoot: there is no such execution.
        Unavailable: Postgres or the payload store cannot be reached; run it again.
    """
    async with _open(settings, execution_id) as ports:
        await _totals(ports.heads, execution_id)
        done = await rebuild(
            ports.heads, ports.log, ports.store, report=report, business=ports.business
        )
        if execution_id is None:
            await ports.tables.delete_unknown()
    return done


async def _totals(heads: PostgresRootHeads, execution_id: int | None) -> RootTotals:
    found = await heads.totals()
    if execution_id is not None and not found.roots:
        raise NoSuchRoot(f"execution {execution_id} is not in the log; check the id")
    return found


@asynccontextmanager
async def _open(settings: Settings, execution_id: int | None) -> AsyncIterator[_Ports]:
    dsn = settings.event_store.canonical_connection.dsn("project")
    async with (
        open_registry(settings) as registry,
        open_pool(dsn, limit_s=settings.runtime.call_limit_s) as pool,
        open_routes(settings) as routes,
        open_tiers(settings, consumer="projector") as payloads,
    ):
        codec = await Codec.open(registry)
        events = PostgresEventStore(None, pool, codec)
        declared = Declared(RegisteredTexts(events, payloads), installed(), PostgresBusiness(pool))
        log = event_store_of(events, pool, codec, settings)
        tables = PostgresProjections(pool, settings.payload_store.location)
        yield _Ports(
            PostgresRootHeads(pool, execution_id),
            log,
            tables,
            RoutedProjections(tables, routes),
            partial(BusinessFolds, log, Outputs(payloads), declared),
        )
