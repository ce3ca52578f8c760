"""Restarts sinks that failed, such as after an outage of their store."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress

from streams.analytics.sinks import declared_sinks
from streams.clock import SystemClock
from streams.errors import StreamsError
from streams.mirror.connect import ConnectClient
from streams.mirror.task_restart import RestartSchedule
from streams.settings import Settings

_INTERVAL_S = 5.0


async def restart_failed_sinks(
    connect: ConnectClient, schedules: Mapping[str, RestartSchedule]
) -> list[str]:
    """Restart each failed sink whose restart is due; return the failures.

    Raises:
        ConnectUnavailable: Connect does not answer.
    """
    known, failures = await connect.names(), []
    for name in (sink.name for sink in declared_sinks() if sink.name in known):
        failure = (await connect.status(name)).failure
        if failure is not None and schedules[name].is_due():
            await connect.restart_failed(name)
            schedules[name].restarted()
            failures.append(f"{name}: {failure}")
    return failures


async def keep_sinks(settings: Settings, report: Callable[[str], None]) -> None:
    """Restart failed sinks, at most once a minute in the end, until cancelled."""
    schedules: dict[str, RestartSchedule] = defaultdict(lambda: RestartSchedule(SystemClock()))
    async with ConnectClient(settings.connect.url) as connect:
        while True:
            await asyncio.sleep(_INTERVAL_S)
            with suppress(StreamsError):  # Connect is down itself; its supervisor restarts it
                for failure in await restart_failed_sinks(connect, schedules):
                    report(f"sink restarted after {failure}")
