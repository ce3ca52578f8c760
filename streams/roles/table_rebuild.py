"""Rebuild of the tables of planner and projector: new changelogs, filled from the log.

The changelogs are deleted and created again. Running processes notice that and fill their tables
from the log; this reads the new changelogs until they have everything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from streams.app import open_log
from streams.errors import Unavailable
from streams.kafka.clients import groupless_consumer
from streams.kafka.errors import BrokerUnavailable
from streams.kafka.topic_creation import changelog_topic
from streams.log.port import OpenRoots
from streams.planner import table_rows as planner_tables
from streams.projector import served
from streams.resources import folder
from streams.roles.planner import GROUP as PLANNER
from streams.roles.projector import GROUP as PROJECTOR
from streams.settings import Settings
from streams.topology import load
from streams.topology.broker import TopicAdmin

STALL_S = 60.0
_POLL_MS = 500
PLANS = changelog_topic(PLANNER, planner_tables.EXECUTIONS)
SERVED = changelog_topic(PROJECTOR, served.EXECUTIONS)
CHANGELOGS = tuple(
    changelog_topic(group, table)
    for group, tables in ((PLANNER, planner_tables.TABLES), (PROJECTOR, served.TABLES))
    for table in tables
)


class TablesStalled(Unavailable):
    """No process fills the tables."""


@dataclass(frozen=True, slots=True)
class FillProgress:
    """How much of the log the new changelogs have."""

    plans: int
    open_executions: int
    partitions: int
    """Partitions of the projector's table that are complete."""
    all_partitions: int

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return self.plans == self.open_executions and self.partitions == self.all_partitions

    def __str__(self) -> str:
        return (
            f"planner: {self.plans:,} of {self.open_executions:,} open executions; "
            f"projector: {self.partitions} of {self.all_partitions} partitions"
        )


@dataclass(frozen=True, slots=True)
class RebuiltTables:
    """The outcome of a rebuild."""

    progress: FillProgress
    seconds: float


@dataclass(slots=True)
class _Changelogs:
    """What the new changelogs have so far."""

    consumer: AIOKafkaConsumer
    seqs: dict[int, int] = field(default_factory=dict)
    """The last absorbed `seq` of each execution in the planner's table."""
    complete: set[int] = field(default_factory=set)
    """Complete partitions of the projector's table."""

    async def read(self) -> None:
        """Read what was written since the last call.

        Raises:
            BrokerUnavailable: the broker does not respond.
        """
        try:
            found = await self.consumer.getmany(timeout_ms=_POLL_MS)
        except KafkaError as error:
            raise BrokerUnavailable(f"changelogs cannot be read: {error!r}") from error
        for partition, records in found.items():
            for record in records:
                if partition.topic == PLANS:
                    self._take_plan(int(record.key), record.value)
                elif served.marks_complete(record.key, record.value):
                    self.complete.add(partition.partition)

    def _take_plan(self, execution_id: int, value: bytes | None) -> None:
        watch = None if value is None else planner_tables.stored_watch(value)
        if watch is None:
            self.seqs.pop(execution_id, None)
        else:
            self.seqs[execution_id] = watch.absorbed_through

    @property
    def partitions(self) -> int:
        """Partitions of the projector's changelog."""
        return sum(one.topic == SERVED for one in self.consumer.assignment())


async def rebuild_tables(
    settings: Settings, report: Callable[[object], None], *, stall_s: float = STALL_S
) -> RebuiltTables:
    """Create the changelogs again; return when the tables have everything of the log.

    Raises:
        TablesStalled: nothing was filled for `stall_s`.
        Unavailable: Postgres or Kafka does not respond.
    """
    started_at = time.monotonic()
    bootstrap = settings.event_store.connection.url
    broker, topology = TopicAdmin(bootstrap), load(folder("topics"))
    report("deleting the changelogs")
    await asyncio.to_thread(broker.delete, CHANGELOGS)
    report("creating the changelogs")
    await asyncio.to_thread(lambda: broker.apply(topology.at(broker.profile())))
    async with open_log(settings, role="rebuild", lanes=1) as log, _reading(bootstrap) as read:
        progress = await _filled(log.store, read, report, stall_s)
    return RebuiltTables(progress, time.monotonic() - started_at)


async def _filled(
    log: OpenRoots, changelogs: _Changelogs, report: Callable[[object], None], stall_s: float
) -> FillProgress:
    expected, last, moved_at = await _open_executions(log), None, time.monotonic()
    while True:
        await changelogs.read()
        # Executions end meanwhile, and their rows are deleted.
        still_open = await _open_executions(log)
        wanted = {key: seq for key, seq in expected.items() if key in still_open}
        progress = FillProgress(
            sum(changelogs.seqs.get(key, -1) >= seq for key, seq in wanted.items()),
            len(wanted),
            len(changelogs.complete),
            changelogs.partitions,
        )
        if progress.is_complete:
            return progress
        if progress != last:
            last, moved_at = progress, time.monotonic()
            report(progress)
        elif time.monotonic() - moved_at > stall_s:
            raise TablesStalled(
                f"no progress for {stall_s:.0f} s ({progress}); check that planner and projector "
                "run (`streams status`); they go on by themselves"
            )


async def _open_executions(log: OpenRoots) -> dict[int, int]:
    found, suspended = await log.open_roots("execution"), await log.suspended_executions()
    return {key: seq for key, seq in found.items() if key not in suspended}


@asynccontextmanager
async def _reading(bootstrap: str) -> AsyncIterator[_Changelogs]:
    consumer = groupless_consumer(bootstrap, PLANS, SERVED)
    try:
        await consumer.start()
        yield _Changelogs(consumer)
    except KafkaError as error:
        raise BrokerUnavailable(f"{bootstrap}: changelogs cannot be read: {error!r}") from error
    finally:
        await consumer.stop()
