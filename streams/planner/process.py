"""Attaches a planner to its process: feed and timers."""

from __future__ import annotations

from streams.kafka.feed.consumption import SetAside, WatchedFeed
from streams.kafka.feed.process import RoleProcess
from streams.kafka.feed.watchdog import LIMIT_S
from streams.kafka.tables.write_behind import WriteBehind
from streams.planner.intake import Intake

TICK_S = 0.5


def attach_planner(
    process: RoleProcess,
    feed: WatchedFeed,
    intake: Intake,
    *,
    writer: WriteBehind | None = None,
    set_aside: SetAside,
    stall_s: float = LIMIT_S,
) -> None:
    """Pass batches and timer ticks to the planner; `writer` writes its tables."""
    watchdog = process.attach(feed, intake.handle, set_aside=set_aside, stall_s=stall_s)

    def progress() -> None:
        """A part of a takeover, which may take long, is done: write it."""
        watchdog.beat()
        if writer is not None:
            writer.request()

    intake.planner.on_progress = progress
    process.every(TICK_S, intake.tick)
    if writer is not None:
        process.add_work(writer.run)
        process.on_stop(writer.write)
