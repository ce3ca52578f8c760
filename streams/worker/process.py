"""Attaches a worker to the process it runs in: its feed, and the checks on it."""

from __future__ import annotations

from streams.kafka.feed.consumption import SetAside, WatchedFeed
from streams.kafka.feed.process import RoleProcess
from streams.kafka.feed.watchdog import LIMIT_S
from streams.log.worker_incarnations import Incarnations, check
from streams.worker.loop import Worker

CHECK_S = 1.0
INCARNATION_S = 5.0
"""How often a worker checks that no other process has its name."""


def attach_worker(
    process: RoleProcess,
    feed: WatchedFeed,
    worker: Worker,
    *,
    incarnations: Incarnations,
    name: str,
    set_aside: SetAside,
    stall_s: float = LIMIT_S,
) -> None:
    """Pass batches to the worker, and end the process when an item failed unexpectedly."""
    watchdog = process.attach(feed, worker.take, set_aside=set_aside, stall_s=stall_s)

    async def check_items() -> None:
        worker.check()
        if worker.is_busy:
            watchdog.beat()  # a frame may take longer than the watchdog waits

    async def check_incarnation() -> None:
        await check(incarnations, name)

    process.every(CHECK_S, check_items)
    process.every(INCARNATION_S, check_incarnation)
    process.on_stop(worker.stop)
