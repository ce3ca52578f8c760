"""Process of the planner: opens its ports and attaches its loop to the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from streams.app import Log, catalog_of, open_log, open_payloads
from streams.clock import SystemClock
from streams.kafka.dead_letters import DeadLetters, KafkaDeadLetters
from streams.kafka.feed.agent import FaustProcess
from streams.kafka.feed.port import Record, TopicPartition
from streams.kafka.feed.topics import TopicFeed
from streams.kafka.names import event_topic
from streams.kafka.partitions import partition_of_id
from streams.kafka.replies import KafkaReplies
from streams.kafka.tables.write_behind import WriteBehind
from streams.kafka.transport.app import Application
from streams.kafka.work.queue import KafkaWorkQueue
from streams.log.worker_incarnations import PostgresIncarnations
from streams.metrics.exposition import RoleMetrics
from streams.metrics.roles import PLANNER
from streams.planner.intake import Intake
from streams.planner.limits import Rules
from streams.planner.loop import Planner
from streams.planner.port import PlannerPorts
from streams.planner.process import attach_planner
from streams.planner.table_rows import TABLES
from streams.planner.tables import PlanTables
from streams.roles.application import create_changelogs, open_process, role_application
from streams.settings import Settings

TOPIC = event_topic("execution")
GROUP = "noetl.planner"


def planner_app(settings: Settings, data: Path) -> Application:
    """Return the planner's Faust application."""
    return role_application(settings, data, group=GROUP, topics=[TOPIC], tables=TABLES)


async def run(
    settings: Settings,
    data: Path,
    stop: asyncio.Event,
    ready: Callable[[], None],
    app: Application | None = None,
) -> None:
    """Plan until `stop` is set."""
    bootstrap = settings.event_store.connection.url
    limit_s = settings.runtime.call_limit_s
    metrics = RoleMetrics(PLANNER, settings.runtime.shard_id)
    process = open_process(app or planner_app(settings, data), settings, data, metrics)
    async with (
        open_log(settings, role="planner", lanes=1, metrics=metrics) as log,
        open_payloads(settings, metrics) as payloads,
        KafkaWorkQueue(bootstrap, limit_s=limit_s) as queue,
        KafkaReplies(bootstrap, limit_s=limit_s) as replies,
        KafkaDeadLetters(bootstrap, limit_s=limit_s, metrics=metrics) as dead_letters,
    ):
        await create_changelogs(process.app, limit_s=limit_s)
        feed = _Feed(process.app)
        tables = PlanTables(process.app.state_tables, lambda key: feed.partition_of(key).partition)
        ports = PlannerPorts(
            store=log.store,
            families=log.store,
            payloads=payloads,
            queue=queue,
            playbooks=catalog_of(log, payloads),
            replies=replies,
            clock=SystemClock(),
            tables=tables,
            incarnations=PostgresIncarnations(log.pool),
            journal=process.journal("executions"),
        )
        planner = Planner(ports, rules_of(settings), name=settings.runtime.shard_id)
        metrics.add(planner.samples)
        metrics.add(log.counts.reaper_samples)
        _attach(process, feed, planner, tables, log, dead_letters, settings.runtime.stall_seconds)
        await process.run(stop, ready)


def _attach(
    process: FaustProcess,
    feed: _Feed,
    planner: Planner,
    tables: PlanTables,
    log: Log,
    dead_letters: DeadLetters,
    stall_s: float,
) -> None:
    """Attach the planner to its process: intake, quarantine, and the writer of its tables."""

    async def poison(record: Record, reason: str) -> None:
        await dead_letters.put(record, reason, kind="planner")

    async def set_aside(record: Record) -> None:
        await poison(record, "ended the planner too often")
        await intake.suspend(record)

    writer = WriteBehind(feed, tables.flush, holds=process.holds)
    intake = feed.intake = Intake(
        writer,
        planner,
        log.store,
        log.codec,
        SystemClock(),
        partition_of=feed.partition_of,
        set_aside=poison,
    )
    attach_planner(process, feed, intake, writer=writer, set_aside=set_aside, stall_s=stall_s)


class _Feed(TopicFeed):
    """Events of executions; rebalances are reported to the intake."""

    intake: Intake

    def __init__(self, app: Application) -> None:
        super().__init__(app, on_assigned=self._adopt, on_revoked=self._drop)

    def partition_of(self, execution_id: int) -> TopicPartition:
        """Return the partition of an execution's events."""
        count = self.partition_count(TOPIC)
        return TopicPartition(TOPIC, partition_of_id(execution_id, count))

    async def _adopt(self, partitions: frozenset[TopicPartition]) -> None:
        await self.intake.assigned(partitions)

    async def _drop(self, partitions: frozenset[TopicPartition]) -> None:
        await self.intake.revoked(partitions)


def rules_of(settings: Settings) -> Rules:
    """Return the planner's limits from the settings."""
    frames, defaults = settings.frames, settings.frame_policy_defaults
    at_once = {"loop": frames.row_concurrency, "fanout": 1}
    policies = {
        kind: {**getattr(defaults, kind).model_dump(), "row_concurrency": rows}
        for kind, rows in at_once.items()
    }
    return Rules(
        window=frames.window,
        max_attempts=frames.max_attempts,
        policies=policies,
        inline_bytes=settings.payload_store.threshold_bytes,
    )
