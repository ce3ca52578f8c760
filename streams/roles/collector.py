"""Process of the collector: expires results every minute and sweeps objects once a day."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from streams.app import open_collector
from streams.clock import SystemClock
from streams.collector.rounds import Rounds
from streams.metrics.exposition import RoleMetrics
from streams.metrics.roles import COLLECTOR
from streams.roles.metrics_page import serving_role_metrics
from streams.settings import Settings


async def run(
    settings: Settings, data: Path, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Collect until `stop` is set."""
    gc = settings.payload_store.gc
    rounds = Rounds(
        lambda: open_collector(settings),
        end_every_s=gc.interval_seconds,
        sweep_every_s=gc.sweep_seconds,
        retention=gc.retention,
        scope_grace=gc.scope_grace,
        monotonic=SystemClock().monotonic,
    )
    metrics = RoleMetrics(COLLECTOR, settings.runtime.shard_id)
    async with serving_role_metrics(metrics, settings, data):
        ready()
        await rounds.run(stop)
