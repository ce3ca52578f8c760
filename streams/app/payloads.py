"""Wiring of the payload store with its caches, the result copies, and the collector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from streams.app.log import open_log
from streams.clock import SystemClock
from streams.collector.port import CollectorPorts
from streams.collector.postgres import open_ledger
from streams.metrics.exposition import RoleMetrics
from streams.payload.objects.open import open_payloads, open_shelves
from streams.payload.shm.node import Terms, open_shared_memory
from streams.payload.shm.space import space_in
from streams.payload.tiers.counts import TierCounts
from streams.payload.tiers.disk import open_disk_cache
from streams.payload.tiers.process_cache import ByteLru
from streams.payload.tiers.samples import tier_samples
from streams.payload.tiers.tiered_store import Caches, TieredPayloads
from streams.results.copies.disk import DiskTier
from streams.results.copies.kafka import KafkaTier
from streams.results.copies.memory import MemoryTier
from streams.results.copies.port import Copies
from streams.results.copies.postgres import PostgresTier
from streams.settings import Settings

MB = 1 << 20


@asynccontextmanager
async def open_collector(settings: Settings) -> AsyncIterator[CollectorPorts]:
    """Open the ports of the collector.

    Raises:
        LogUnavailable: Postgres cannot be reached.
    """
    async with (
        open_log(settings, role="collector", lanes=1) as log,
        open_ledger(settings.event_store.canonical_connection.dsn("collect")) as ledger,
        open_shelves(settings) as shelves,
    ):
        yield CollectorPorts(ledger, log.store, shelves)


@asynccontextmanager
async def open_copies(
    settings: Settings, pool: asyncpg.Pool, folder: Path
) -> AsyncIterator[Copies]:
    """Open the tiers that hold copies of results; `folder` is the default for their files."""
    from streams.results.copies.duckdb import DuckdbTier  # only workers need its engine

    clock, chosen = SystemClock(), settings.payload_store.results
    rows = DuckdbTier(folder / "results.duckdb", clock, chosen.duckdb_mb * MB)
    disk = Path(chosen.disk_path) if chosen.disk_path else folder / "results"
    volume = Path(chosen.pvc_path) if chosen.pvc_path else folder / "volume"
    bootstrap = settings.event_store.connection.url
    is_volume = chosen.pvc_path is not None
    async with KafkaTier(bootstrap, clock, limit_s=settings.runtime.call_limit_s) as kv:
        try:
            copies = Copies(
                {
                    "memory": MemoryTier(clock),
                    "kv": kv,
                    "db": PostgresTier(pool),
                    "disk": DiskTier(disk, clock, chosen.disk_mb * MB),
                    "pvc": DiskTier(volume, clock, chosen.pvc_mb * MB, is_volume=is_volume),
                    "duckdb": rows,
                }
            )
            async with copies.tended():
                yield copies
        finally:
            rows.close()


def sharing_terms(settings: Settings) -> Terms:
    """Return the terms on which processes of this node with the same store share memory."""
    store = settings.payload_store
    cache, place = store.cache, store.connection
    return Terms(
        node_id=settings.runtime.node_id,
        space=space_in(
            Path(cache.tier_15_path), store.backend, place.endpoint, place.bucket, place.path
        ),
        budget_bytes=cache.tier_15_node_budget_mb * MB,
        life_s=settings.frames.lease_seconds + cache.tier_15_grace_seconds,
        sealed=cache.tier_15_carrier == "memfd",
    )


@asynccontextmanager
async def open_tiers(
    settings: Settings, *, consumer: str, metrics: RoleMetrics | None = None
) -> AsyncIterator[TieredPayloads]:
    """Open the payload store with its tiers in front, for a process of this name.

    Raises:
        NoSuchBackend: this version cannot use the store.
    """
    cache, counts = settings.payload_store.cache, TierCounts(consumer)
    terms = sharing_terms(settings)
    disk_bytes = cache.tier_2_disk_gb * 1024 * MB
    caches = Caches(
        memory=ByteLru(cache.tier_1_memory_mb * MB) if cache.tier_1_memory_mb else None,
        shared=await asyncio.to_thread(open_shared_memory, terms, SystemClock(), counts),
        disk=await asyncio.to_thread(
            open_disk_cache, Path(cache.tier_2_disk_path), disk_bytes, counts
        ),
    )
    async with (
        open_payloads(settings, metrics) as durable,
        TieredPayloads(durable, caches, counts).tended() as tiers,
    ):
        if metrics is not None:
            metrics.add(lambda: tier_samples(tiers.snapshot()), blocks=True)
        yield tiers
