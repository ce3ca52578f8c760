"""The node's broker of sealed memory, as a process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from streams.app import MB
from streams.clock import SystemClock
from streams.payload.shm.broker import Broker
from streams.payload.shm.memfd import broker_path
from streams.settings import Settings


async def run(settings: Settings, _: Path, stop: asyncio.Event, ready: Callable[[], None]) -> None:
    """Keep regions until told to stop; processes that are told of one find it by its name."""
    cache = settings.payload_store.cache
    broker = Broker(
        broker_path(Path(cache.tier_15_path)), cache.tier_15_node_budget_mb * MB, SystemClock()
    )
    ended = threading.Event()
    serving = asyncio.create_task(asyncio.to_thread(broker.serve, ended))
    stopping = asyncio.create_task(stop.wait())
    ready()
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended.set()
        stopping.cancel()
        await serving
