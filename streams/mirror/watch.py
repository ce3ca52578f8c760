"""Watching the mirror: which alarms begin and end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from streams.mirror.alarms import Alarm, Limits
from streams.mirror.guard import Guard
from streams.mirror.readings import AlarmName
from streams.settings import Settings

INTERVAL_S = 2.0
_PROBE_TIMEOUT_S = 0.5
# These also come and go with a restart: reported only when they stay.
_PASSING = {
    AlarmName.CONNECT_UNREACHABLE,
    AlarmName.CONNECTOR_MISSING,
    AlarmName.KAFKA_UNREACHABLE,
    AlarmName.MIRROR_BEHIND,
    AlarmName.POSTGRES_UNREACHABLE,
}
_STAYS_COUNT = 2


@dataclass(frozen=True, slots=True)
class AlarmChange:
    """What began and what ended since the last look, and all that is wrong now."""

    raised: tuple[Alarm, ...]
    cleared: tuple[Alarm, ...]
    alarms: tuple[Alarm, ...]


async def watch(
    settings: Settings, *, limits: Limits | None = None, interval_s: float = INTERVAL_S
) -> AsyncGenerator[AlarmChange, None]:
    """Yield whenever an alarm begins or ends, for ever.

    With the usual interval a change is reported within 10 s, also while a part is down.
    """
    active: dict[AlarmName, Alarm] = {}
    seen: Counter[AlarmName] = Counter()
    async with Guard(settings, limits) as guard:
        while True:
            alarms = await guard.check(timeout_s=_PROBE_TIMEOUT_S)
            found = {alarm.name: alarm for alarm in alarms}
            seen = Counter({name: seen[name] + 1 for name in found})
            now = {
                name: alarm
                for name, alarm in found.items()
                if name in active or name not in _PASSING or seen[name] >= _STAYS_COUNT
            }
            if now.keys() != active.keys():
                yield AlarmChange(
                    raised=tuple(now[name] for name in now if name not in active),
                    cleared=tuple(active[name] for name in active if name not in now),
                    alarms=tuple(now.values()),
                )
            active = now
            await asyncio.sleep(interval_s)


async def report_alarms(settings: Settings, report: Callable[[str], None]) -> None:
    """Report each alarm as it begins and ends, until cancelled; made for a supervisor."""
    async with aclosing(watch(settings)) as changes:
        async for change in changes:
            for alarm in change.raised:
                report(f"mirror: ALARM {alarm}")
            for alarm in change.cleared:
                report(f"mirror: {alarm.name} is over")
