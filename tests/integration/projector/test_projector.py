"""The projector behind the real mirror: from an append to tables of its own, through Kafka.

An execution is appended whole, so that no planner of the same stack has a part in it, and the
tables are in a database of this module's own, where no other projector writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from uuid import uuid4

import asyncpg
import orjson
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition

from streams.app import Log, open_pool
from streams.clock import SystemClock
from streams.kafka.feed.kafka import KafkaFeed
from streams.kafka.feed.port import Feed, Record, TopicPartition
from streams.projector.loop import Projector
from streams.projector.postgres import PostgresProjections
from streams.retry import retry
from streams.settings import Settings
from streams.worker.rows.kafka_ranges import KafkaPartitions
from tests.support.log.databases import dsn
from tests.support.projector.executions import Story

pytestmark = pytest.mark.stack
TOPICS = ("noetl.events.execution", "noetl.events.catalog")
Through = Callable[[Feed], Feed]
Running = Callable[..., AbstractAsyncContextManager[None]]


@pytest.fixture
async def pool(database: Settings) -> AsyncIterator[asyncpg.Pool]:
    async with open_pool(dsn(database, "project")) as opened:
        yield opened


@pytest.fixture
async def running(settings: Settings, log: Log, pool: asyncpg.Pool) -> Running:
    """Run a projector of a group of this test's own; leaving the body is a crash."""
    bootstrap, group = settings.event_store.connection.url, f"test-projector-{uuid4().hex}"
    await from_now_on(bootstrap, group)

    @asynccontextmanager
    async def start(through: Through = lambda feed: feed) -> AsyncIterator[None]:
        async with KafkaFeed(bootstrap, TOPICS, group=group, instance="p-0", idle_s=0.1) as feed:
            seen = through(feed)
            projector = Projector(
                seen,
                log.store,
                PostgresProjections(pool),
                log.codec,
                shard_id=group,
                topic_ids=dict.fromkeys(TOPICS, "t-1"),
            )
            task = asyncio.create_task(project(seen, projector))
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    return start


async def project(feed: Feed, projector: Projector) -> None:
    """Project until cancelled."""
    while True:
        if batch := await feed.next_batch():
            await retry(lambda batch=batch: projector.handle(batch))  # type: ignore[misc]


async def from_now_on(bootstrap: str, group: str) -> None:
    """Let a group begin where the topics end: what earlier tests appended is not read."""
    partitions = KafkaPartitions(bootstrap, SystemClock())
    ends = {
        KafkaPartition(topic, number): end
        for topic in TOPICS
        for number, (_, end) in (await partitions.ranges(topic)).items()
    }
    async with AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False
    ) as consumer:
        consumer.assign(list(ends))
        await consumer.commit(ends)


class Cut:
    """A feed that stops within an execution: what comes after that point stays undelivered."""

    def __init__(self, feed: Feed, execution_id: int, last_seq: int) -> None:
        self._feed, self._key, self._last = feed, str(execution_id).encode(), last_seq
        self._cut: set[TopicPartition] = set()

    async def next_batch(self) -> Mapping[TopicPartition, list[Record]]:
        batch = await self._feed.next_batch()
        kept = {partition: list(self._before(records)) for partition, records in batch.items()}
        return {partition: records for partition, records in kept.items() if records}

    def acknowledge(self, records: Iterable[Record]) -> None:
        self._feed.acknowledge(records)

    def _before(self, records: Iterable[Record]) -> Iterable[Record]:
        for record in records:
            if record.key == self._key and int(dict(record.headers)["seq"]) > self._last:
                self._cut.add(record.topic_partition)
            if record.topic_partition in self._cut:
                return
            yield record


async def until_seen(pool: asyncpg.Pool, execution_id: int, seq: int) -> asyncpg.Record:
    async with asyncio.timeout(90):
        while True:
            row = await pool.fetchrow(
                "SELECT * FROM noetl.execution WHERE execution_id = $1", execution_id
            )
            if row is not None and row["last_seq"] >= seq:
                return row
            await asyncio.sleep(0.02)


async def test_what_is_appended_is_seen_in_the_tables(
    log: Log, pool: asyncpg.Pool, running: Running
) -> None:
    story = Story(log.ids.take(100)[0])
    async with running():
        await log.store.append(story.whole())
        row = await until_seen(pool, story.root.id, 19)

    assert row["status"] == "COMPLETED"
    frames = await pool.fetch(
        "SELECT * FROM noetl.frame WHERE execution_id = $1 ORDER BY frame_id", story.root.id
    )
    assert [(one["status"], one["attempts"]) for one in frames] == [
        ("COMMITTED", 1),
        ("COMMITTED", 2),
    ]


async def test_a_projector_that_crashed_goes_on_where_the_tables_are(
    log: Log, pool: asyncpg.Pool, running: Running
) -> None:
    story = Story(log.ids.take(100)[0])
    async with running(lambda feed: Cut(feed, story.root.id, 8)):
        await log.store.append(story.whole())
        row = await until_seen(pool, story.root.id, 8)
        assert (row["last_seq"], row["status"]) == (8, "RUNNING")

    async with running():
        row = await until_seen(pool, story.root.id, 19)

    assert row["status"] == "COMPLETED"
    assert orjson.loads(row["state"])["loop"]["load"]["done"] == 10
    frames = await pool.fetchval(
        "SELECT count(*) FROM noetl.frame WHERE execution_id = $1 AND status = 'COMMITTED'",
        story.root.id,
    )
    assert frames == 2
