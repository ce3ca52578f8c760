"""Preparation of a started stack: migrations, topics, connectors, round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from streams.analytics.setup import SINK_PROFILES, start_sinks
from streams.analytics.task_restart import keep_sinks
from streams.errors import StreamsError
from streams.local.settings import load_own
from streams.local.state import StackState
from streams.log.migrate import migrate
from streams.mirror.setup import set_up
from streams.mirror.task_restart import restart_failures
from streams.mirror.watermark import Watermark


async def prepare(state: StackState, report: Callable[[str], None]) -> None:
    """Set up the services and verify them; `report` gets a line per step."""
    loaded = load_own(state)
    settings = loaded.settings
    if loaded.overruled:
        where = loaded.overruled[0].origin
        report(f"settings: {where} has other servers; this stack uses its own")
    database = settings.event_store.canonical_connection
    done = await migrate(database.dsn("owner"))
    report(f"log: {len(done)} migration steps" if done else "log: up to date")
    await set_up(settings, report)
    async with Watermark(database.dsn("append"), settings.event_store.connection.url) as mark:
        seconds = await mark.round_trip()
    report(f"round trip: Postgres to Kafka in {seconds * 1000:.0f} ms")


async def start_analytics(state: StackState, report: Callable[[str], None]) -> None:
    """Start the analytics sinks; a stack without them is usable, so a failure is only reported."""
    try:
        await start_sinks(load_own(state).settings, SINK_PROFILES, report)
    except StreamsError as error:
        report(f"sinks: {error}")


async def restart_failed_connectors(state: StackState, report: Callable[[str], None]) -> None:
    """Restart the mirror and the sinks each time they have failed, until cancelled."""
    settings = load_own(state).settings
    await asyncio.gather(restart_failures(settings, report), keep_sinks(settings, report))
