"""Lag of a cluster's groups, and of the flow through the system, with what it means."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from streams.errors import Unavailable
from streams.lag.backlog import WorkBacklog
from streams.lag.core import lag_of
from streams.lag.evaluation import LagStatus
from streams.lag.hops import read_hops
from streams.lag.kafka import ClusterLag
from streams.lag.log import lag_log
from streams.lag.meaning import meaning_of, pool_of
from streams.lag.model import GroupLag
from streams.lag.pools import pool_backlogs
from streams.lag.waterfall import Waterfall, waterfall_of
from streams.mirror.alarms import Alarm, Limits, judge
from streams.mirror.guard import Guard
from streams.mirror.readings import Readings
from streams.settings import Settings

_PROBE_S = 2.0


@dataclass(frozen=True, slots=True)
class LagReport:
    """Lag of groups, and the work that waits for our workers."""

    groups: tuple[GroupLag, ...]
    backlogs: Mapping[str, WorkBacklog] = field(default_factory=dict)
    """By group."""
    problems: tuple[str, ...] = ()
    """What could not be read, and what is missing for it."""

    @property
    def status(self) -> LagStatus:
        """The worst status of any group."""
        return max((one.total.status for one in self.groups), default=LagStatus.OK)


async def report_lag(
    cluster: ClusterLag, settings: Settings, groups: Collection[str] = ()
) -> LagReport:
    """Measure the lag of these groups, or of all.

    Raises:
        GroupUnknown: the cluster does not have one of them.
        BrokerUnavailable: Kafka does not respond.
    """
    readings = {one.group: one for one in await cluster.read(groups)}
    lags = tuple(
        lag_of(one, silence_ms=meaning_of(name).silence_ms) for name, one in readings.items()
    )
    problems = [] if cluster.problem is None else [f"no status and no rates: {cluster.problem}"]
    backlogs: dict[str, WorkBacklog] = {}
    if any(pool_of(name) for name in readings):
        try:
            async with lag_log(settings) as log:
                by_pool = {one.pool: one for one in await pool_backlogs(cluster, log, readings)}
            backlogs = {
                name: by_pool[pool] for name in readings if (pool := pool_of(name)) in by_pool
            }
        except Unavailable as error:
            problems.append(f"frames and rows that wait are unknown: {error}")
    return LagReport(lags, backlogs, tuple(problems))


async def read_waterfall(cluster: ClusterLag, settings: Settings) -> Waterfall:
    """Measure all hops.

    Raises:
        BrokerUnavailable, LogUnavailable: Kafka or Postgres does not respond.
    """
    async with lag_log(settings) as log:
        return waterfall_of(*await read_hops(cluster, log))


async def read_slot(settings: Settings) -> tuple[Readings, tuple[Alarm, ...]]:
    """Take the guard's readings of the mirror and its slot, and its alarms."""
    async with Guard(settings) as guard:
        readings = await guard.probe(timeout_s=_PROBE_S)
    return readings, judge(readings, Limits())
