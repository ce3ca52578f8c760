"""Process of the node's broker of sealed memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from streams.app import sharing_terms
from streams.clock import SystemClock
from streams.metrics.exposition import RoleMetrics
from streams.metrics.roles import BROKER
from streams.payload.shm.broker import ShmBroker
from streams.payload.tiers.counts import TierCounts
from streams.payload.tiers.samples import share_samples
from streams.roles.metrics_page import serving_role_metrics
from streams.roles.start import role_folder
from streams.roles.tier_stats import writing_tier_stats
from streams.settings import Settings


async def run(
    settings: Settings, data: Path, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Hold regions until `stop` is set; other processes open them by name."""
    terms = sharing_terms(settings)
    broker = ShmBroker(terms.space, terms.budget_bytes, SystemClock(), TierCounts("broker"))
    ended = threading.Event()
    serving = asyncio.create_task(asyncio.to_thread(broker.serve, ended))
    stopping = asyncio.create_task(stop.wait())
    metrics = RoleMetrics(BROKER, settings.runtime.shard_id)
    metrics.add(lambda: share_samples(broker.snapshot()), blocks=True)
    try:
        async with (
            writing_tier_stats(broker, role_folder(settings, data)),
            serving_role_metrics(metrics, settings, data),
        ):
            ready()
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended.set()
        stopping.cancel()
        await serving
