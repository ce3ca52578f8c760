"""Benchmark of a subscription's exactness: Avro records in transactions, and kills.

A foreign producer writes Avro records to a topic in transactions, some of which it aborts. The
trigger role and Kafka are killed while the records flow. Afterwards the executions in the log are
compared with the committed records of the topic. The bench counts executions that were started;
nothing has to run them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import aiohttp
import asyncpg
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from streams.clock import SystemClock
from streams.dev.bench.confluent_registry import serving_registry
from streams.dev.bench.playbook_setup import register
from streams.dev.bench.report import BenchReport, Figure
from streams.dev.bench.service_kills import ServiceKills
from streams.dev.bench.started_check import StartedCheck, check_started
from streams.dev.bench.transactional_load import SCHEMA_TEXT, LoadCounts, TransactionalLoad
from streams.errors import Unavailable
from streams.kafka.clients import admin
from streams.schema.registry_external import ExternalRegistry, RegistryClient
from streams.settings import Settings
from streams.trigger.kafka import KafkaTopicIds

PARTITIONS = 4
STALLED_S, POLL_S = 180.0, 0.2
TRIGGER, KAFKA = "trigger-0", "kafka"
PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: readings, path: {path}}}
workflow:
  - step: start
    tool: {{kind: noop}}
"""
SUBSCRIPTION = """\
apiVersion: noetl.io/v1
kind: Subscription
metadata: {{name: readings, path: {path}-subscription}}
spec:
  source: kafka
  topic: {topic}
  format: avro
  schema_registry: {registry}
  dispatch: {{playbook: {path}}}
"""
STARTED = """
SELECT count(*) FROM noetl.trigger_ledger
WHERE topic_id = $1 AND execution_id IS NOT NULL"""
Say = Callable[[str], None]


class SubscriptionStalled(Unavailable):
    """No execution was started for a long time."""


@dataclass
class StartedCount:
    """How many executions were started, by the ledger, and when the last one was seen."""

    dsn: str
    topic_id: str
    count: int = 0
    seen_at: float = field(default_factory=time.monotonic)

    async def poll(self, is_enough: Callable[[], bool]) -> None:
        """Count until it is enough.

        Raises:
            SubscriptionStalled: the count does not grow.
        """
        connection = await asyncpg.connect(self.dsn)
        try:
            while not is_enough():
                now = int(await connection.fetchval(STARTED, self.topic_id))
                if now > self.count:
                    self.count, self.seen_at = now, time.monotonic()
                elif time.monotonic() - self.seen_at > STALLED_S:
                    raise SubscriptionStalled(
                        f"{self.count} executions were started, and none in the last "
                        f"{STALLED_S:.0f} s; see the log of the trigger role"
                    )
                await asyncio.sleep(POLL_S)
        finally:
            await connection.close()

    async def reaches(self, count: int) -> None:
        """Wait until this many executions were started, while another task polls."""
        while self.count < count:  # noqa: ASYNC110 - a table has no event
            await asyncio.sleep(POLL_S)


@dataclass
class KillTimes:
    """How long killed services took to be ready again."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {TRIGGER: [], KAFKA: []})

    async def kill_at(
        self, kills: ServiceKills, started: StartedCount, marks: Sequence[int]
    ) -> None:
        """Kill the trigger role and Kafka in turn, when the count reaches each mark."""
        for number, mark in enumerate(marks):
            await started.reaches(mark)
            name = (TRIGGER, KAFKA)[number % 2]
            self.seconds[name].append(await kills.kill(name))


async def bench_subscription(
    settings: Settings, data: Path, *, records: int, kills: int, say: Say
) -> BenchReport:
    """Write records, kill services, wait, and compare."""
    tag = uuid4().hex[:8]
    path, topic = f"bench/readings-{tag}", f"bench-readings-{tag}"
    killer, times = ServiceKills(data), KillTimes()
    for name in times.seconds:
        killer.service(name)
    bootstrap, dsn = (
        settings.event_store.connection.url,
        settings.event_store.canonical_connection.dsn("read"),
    )
    topic_id = await _make_topic(bootstrap, topic)
    async with _registry() as (registry, schema_id):
        await register(settings, PLAYBOOK.format(path=path))
        await register(settings, SUBSCRIPTION.format(path=path, topic=topic, registry=registry))
        load = TransactionalLoad(bootstrap, topic, schema_id, records, PARTITIONS)
        started = StartedCount(dsn, topic_id)
        marks = [records * number // (2 * kills + 1) for number in range(1, 2 * kills + 1)]
        say(f"{records} records in transactions; {kills} kills each of {TRIGGER} and {KAFKA}")
        began = time.monotonic()
        await _flow(load, started, lambda: times.kill_at(killer, started, marks))
        numbers = await asyncio.to_thread(load.committed_numbers)
        await started.poll(lambda: started.count >= len(numbers))
        wall_s = started.seen_at - began
    say(f"{started.count} executions in {wall_s:.0f} s; comparing")
    found = await check_started(dsn, data, topic, topic_id, numbers)
    return _report(records, load.counts, times, found, wall_s)


async def _flow(
    load: TransactionalLoad, started: StartedCount, kill: Callable[[], Coroutine[None, None, None]]
) -> None:
    """Write all records, a little ahead of the executions, while services are killed."""
    window = max(10 * load.size, load.records // 10)
    is_written = asyncio.Event()

    async def write() -> None:
        await asyncio.to_thread(load.run, lambda: window - (load.counts.committed - started.count))
        is_written.set()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            group.create_task(kill())
            group.create_task(
                started.poll(lambda: is_written.is_set() and started.count >= load.counts.committed)
            )
    finally:
        load.stop.set()


def _report(
    records: int, counts: LoadCounts, times: KillTimes, found: StartedCheck, wall_s: float
) -> BenchReport:
    back_s = {name: round(max(all_s), 1) for name, all_s in times.seconds.items() if all_s}
    figures: dict[str, Figure] = {
        "records": found.records,
        "aborted_records": counts.aborted,
        "repeated_transactions": counts.repeated_transactions,
        "kills": {name: len(all_s) for name, all_s in times.seconds.items()},
        "slowest_restart_s": back_s,
        "started": found.started,
        "lost": found.lost,
        "doubled": found.doubled,
        "aborted_started": found.aborted_started,
        "rejected": found.rejected,
        "reconcile_exit": found.reconcile_exit,
        "lag": found.lag,
        "wall_s": round(wall_s, 1),
        "started_per_s": round(found.started / wall_s, 1),
    }
    faults = list(found.faults())
    if found.records < records:
        faults.append(f"the topic has {found.records} committed records, not {records}")
    return BenchReport(figures, tuple(faults))


@asynccontextmanager
async def _registry() -> AsyncIterator[tuple[str, int]]:
    """Serve a schema registry; yields its address and the id of the records' schema."""
    async with serving_registry() as url, aiohttp.ClientSession() as session:
        registry = ExternalRegistry(RegistryClient(url, session))
        yield url, await registry.id_for("readings-value", SCHEMA_TEXT)


async def _make_topic(bootstrap: str, topic: str) -> str:
    """Create the topic and return its id."""
    client = admin(bootstrap)
    made = client.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic]
    await asyncio.to_thread(made.result, 30)
    return await KafkaTopicIds(bootstrap, SystemClock()).topic_id(topic)
