"""Restarts the mirror's connector after a failure that its replication slot survived.

Debezium retries a lost connection, but a task that fails while it starts (Postgres is just
recovering) stays FAILED until somebody restarts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from streams.clock import Clock, SystemClock
from streams.errors import StreamsError
from streams.mirror.alarms import Limits, judge
from streams.mirror.connect import ConnectClient
from streams.mirror.connect_errors import ConnectorUnknown
from streams.mirror.guard import Guard
from streams.mirror.readings import AlarmName, Readings
from streams.mirror.setup import MIRROR
from streams.settings import Settings

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
_INTERVAL_S = 2.0
HEALTHY_S = 60.0
"""A connector that ran this long had recovered: its next failure is a first one again."""

# Any other alarm has a cause that a restart would not remove, or would hide.
_RESTARTABLE = {
    AlarmName.CONNECTOR_FAILED,
    AlarmName.TASK_FAILED,
    AlarmName.SLOT_INACTIVE,
    AlarmName.MIRROR_BEHIND,
    AlarmName.PARTITIONS_MISSING_AHEAD,
}


class RestartSchedule:
    """When a connector that keeps failing may be restarted: 2 s doubling to a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pause_s = FIRST_PAUSE_S
        self._restarted_at: float | None = None

    def is_due(self) -> bool:
        """Return whether the last restart is long enough ago."""
        last = self._restarted_at
        if last is None:
            return True
        elapsed_s = self._clock.monotonic() - last
        if elapsed_s >= self._pause_s + HEALTHY_S:
            self._pause_s = FIRST_PAUSE_S
        return elapsed_s >= self._pause_s

    def restarted(self) -> None:
        """Double the pause before the next restart."""
        if self._restarted_at is not None:
            self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
        self._restarted_at = self._clock.monotonic()


def is_restartable(readings: Readings) -> bool:
    """Return whether a restart can help: the slot is intact and nobody rebuilds the mirror."""
    database = readings.database
    if database is None or database.slot is None or database.is_rebuilding:
        return False
    return {alarm.name for alarm in judge(readings, Limits())} <= _RESTARTABLE


async def restart_if_failed(settings: Settings, schedule: RestartSchedule) -> str | None:
    """Restart a failed mirror whose slot is intact; return the failure, None when nothing was done.

    Raises:
        ConnectUnavailable: Connect does not answer.
    """
    async with ConnectClient(settings.connect.url) as connect:
        try:
            failure = (await connect.status(MIRROR)).failure
        except ConnectorUnknown:
            return None
        if failure is None or not schedule.is_due():
            return None
        async with Guard(settings) as guard:
            readings = await guard.probe(timeout_s=0)
        if not is_restartable(readings):
            return None
        await connect.restart_failed(MIRROR)
        schedule.restarted()
        return failure


async def restart_failures(settings: Settings, report: Callable[[str], None]) -> None:
    """Restart the mirror's connector each time it has failed, until cancelled."""
    schedule = RestartSchedule(SystemClock())
    while True:
        await asyncio.sleep(_INTERVAL_S)
        with suppress(StreamsError):  # Connect or Postgres is down itself; the guard reports it
            if failure := await restart_if_failed(settings, schedule):
                report(f"mirror: restarted after {failure}")
