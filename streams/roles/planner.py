"""Process of the planner: opens its ports and attaches its loop to the shell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

from aiokafka.partitioner import murmur2

from streams.app import Log, catalog_of, open_log, open_payloads
from streams.clock import SystemClock
from streams.kafka.dead_letters import DeadLetters, KafkaDeadLetters
from streams.kafka.feed.agent import Shell
from streams.kafka.feed.batch_consumer import KafkaFeed
from streams.kafka.feed.port import Record, TopicPartition
from streams.kafka.names import event_topic
from streams.kafka.replies import KafkaReplies
from streams.kafka.work.queue import KafkaWorkQueue
from streams.log.worker_incarnations import PostgresIncarnations
from streams.planner.intake import Intake
from streams.planner.limits import Rules
from streams.planner.loop import Planner
from streams.planner.port import PlannerPorts
from streams.planner.process import attach_planner
from streams.planner.tables import PlanTables
from streams.roles.start import role_folder
from streams.settings import Settings

TOPIC = event_topic("execution")


async def run(
    settings: Settings, data: Path, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Plan until `stop` is set."""
    bootstrap, folder = settings.event_store.connection.url, role_folder(settings, data)
    limit_s = settings.runtime.call_limit_s
    async with (
        open_log(settings, role="planner", lanes=1) as log,
        open_payloads(settings) as payloads,
        KafkaWorkQueue(bootstrap, limit_s=limit_s) as queue,
        KafkaReplies(bootstrap, limit_s=limit_s) as replies,
        KafkaDeadLetters(bootstrap, limit_s=limit_s) as dead_letters,
    ):
        with closing(PlanTables(folder / "plans")) as tables:
            shell = Shell("planner", folder)
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
                journal=shell.journal("executions"),
            )
            planner = Planner(ports, rules_of(settings), name=settings.runtime.shard_id)
            async with _open_intake(settings, log, planner, dead_letters) as (feed, intake):

                async def set_aside(record: Record) -> None:
                    await dead_letters.put(record, "ended the planner too often", kind="planner")
                    await intake.suspend(record)

                attach_planner(
                    shell, feed, intake, set_aside=set_aside, stall_s=settings.runtime.stall_seconds
                )
                await shell.run(stop, ready)


@asynccontextmanager
async def _open_intake(
    settings: Settings, log: Log, planner: Planner, dead_letters: DeadLetters
) -> AsyncIterator[tuple[KafkaFeed, Intake]]:
    """Open the feed of execution events, and the intake that passes them to the planner."""

    async def assigned(partitions: frozenset[TopicPartition]) -> None:
        await intake.assigned(partitions)

    async def revoked(partitions: frozenset[TopicPartition]) -> None:
        await intake.revoked(partitions)

    async def poison(record: Record, reason: str) -> None:
        await dead_letters.put(record, reason, kind="planner")

    async with KafkaFeed(
        settings.event_store.connection.url,
        [TOPIC],
        group="noetl.planner",
        instance=settings.runtime.shard_id,
        on_assigned=assigned,
        on_revoked=revoked,
    ) as feed:
        partitions = feed.partition_count(TOPIC)
        intake = Intake(
            feed,
            planner,
            log.store,
            log.codec,
            SystemClock(),
            partition_of=lambda key: partition_of(key, partitions),
            set_aside=poison,
        )
        yield feed, intake


def partition_of(execution_id: int, partitions: int) -> TopicPartition:
    """Return the partition of an execution's events, as Kafka's producers choose it."""
    hashed = murmur2(str(execution_id).encode()) & 0x7FFFFFFF
    return TopicPartition(TOPIC, hashed % partitions)


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
