"""The projector behind the real mirror: from an append to the tables, through Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

import asyncpg
import orjson
import pytest

from streams.app import Log, open_pool
from streams.feed.kafka import KafkaFeed
from streams.projector.loop import Projector
from streams.projector.postgres import PostgresProjections
from streams.settings import Settings
from tests.logs import dsn
from tests.projections import Story

pytestmark = pytest.mark.stack
TOPICS = ("noetl.events.execution", "noetl.events.catalog")
Running = Callable[[], Any]


@pytest.fixture
async def pool(settings: Settings) -> AsyncIterator[asyncpg.Pool]:
    async with open_pool(dsn(settings, "project")) as opened:
        yield opened


@pytest.fixture
def running(settings: Settings, log: Log, pool: asyncpg.Pool) -> Running:
    """Run a projector of a group of this test's own; leaving the body is a crash."""
    group = f"test-projector-{uuid4().hex}"

    @asynccontextmanager
    async def start() -> AsyncIterator[None]:
        feed = KafkaFeed(
            settings.event_store.connection.url, TOPICS, group=group, instance="p-0", idle_s=0.1
        )
        async with feed:
            projector = Projector(
                feed,
                log.store,
                PostgresProjections(pool),
                log.codec,
                shard_id=group,
                topic_ids=dict.fromkeys(TOPICS, "t-1"),
            )
            task = asyncio.create_task(projector.run(asyncio.Event()))
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    return start


async def until_seen(pool: asyncpg.Pool, execution_id: int, seq: int) -> asyncpg.Record:
    async with asyncio.timeout(30):
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
        for event in story.whole():
            await log.store.append([event])
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
    events = story.whole()
    async with running():
        await log.store.append(events[:8])
        await until_seen(pool, story.root.id, 8)
    await log.store.append(events[8:])

    async with running():
        row = await until_seen(pool, story.root.id, 19)

    assert row["status"] == "COMPLETED"
    assert orjson.loads(row["state"])["loop"]["load"]["done"] == 10
    frames = await pool.fetchval(
        "SELECT count(*) FROM noetl.frame WHERE execution_id = $1 AND status = 'COMMITTED'",
        story.root.id,
    )
    assert frames == 2
