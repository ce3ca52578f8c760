"""Roles as processes: killed, crashing, hanging, sharing a topic, on the real broker."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.data_folder import layout_of, ready_path
from streams.kafka.feed.kafka import KafkaFeed
from streams.kafka.feed.port import TopicPartition
from streams.local.service import Service, ServiceReport, ServiceState
from streams.local.supervisor import Supervisor
from streams.settings import Settings
from tests.support.waiting import until

pytestmark = pytest.mark.stack
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
async def topic(settings: Settings) -> AsyncIterator[str]:
    """A topic of two partitions."""
    name = f"noetl.test.{uuid4().hex}"
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.event_store.connection.url)
    await admin.start()
    await admin.create_topics([NewTopic(name, 2, 1)])
    yield name
    await admin.delete_topics([name])
    await admin.close()


@pytest.fixture
async def producer(settings: Settings) -> AsyncIterator[AIOKafkaProducer]:
    made = AIOKafkaProducer(bootstrap_servers=settings.event_store.connection.url)
    await made.start()
    yield made
    await made.stop()


class Echo:
    """An echo role under supervision."""

    def __init__(self, data: Path) -> None:
        self._seen = data / "seen"
        self.pids: list[int] = []
        self.started_in = 0.0
        self.reports: list[ServiceReport] = []

    def report(self, report: ServiceReport) -> None:
        self.reports.append(report)
        if report.state is ServiceState.READY and report.pid is not None:
            self.pids.append(report.pid)

    @property
    def seen(self) -> list[tuple[int, str]]:
        """What was read, each with the process that read it."""
        if not self._seen.exists():
            return []
        lines = (line.partition(" ") for line in self._seen.read_text().splitlines())
        return [(int(pid), text) for pid, _, text in lines]

    async def until(self, holds: Callable[[], bool], seconds: float = 120.0) -> float:
        """Wait until something holds; return how long that took."""
        began = time.monotonic()
        await until(holds, within_s=seconds)
        return time.monotonic() - began


@asynccontextmanager
async def supervised(settings: Settings, topic: str, data: Path) -> AsyncIterator[Echo]:
    layout = layout_of(data)
    layout.create()

    async def ready() -> bool:
        return int(ready_path(layout, "echo-0").read_text()) == echo.reports[-1].pid

    bootstrap = settings.event_store.connection.url
    part = Service(
        name="echo-0",
        version="1",
        address="",
        command=(
            sys.executable,
            "-m",
            "tests.support.servers.echo_role",
            bootstrap,
            topic,
            str(data),
        ),
        log=layout.log("echo-0"),
        ready=ready,
        environment={"NOETL_SHARD_ID": "echo-0"},
        folder=REPOSITORY,
        stop_seconds=30.0,
    )
    echo = Echo(data)
    supervisor = Supervisor([part], echo.report)
    began = time.monotonic()
    await supervisor.start()
    echo.started_in = time.monotonic() - began
    try:
        yield echo
    finally:
        await supervisor.stop()


async def test_a_role_that_is_killed_reads_its_next_record_within_five_seconds(
    settings, topic, producer, tmp_path
):
    async with supervised(settings, topic, tmp_path) as echo:
        await producer.send_and_wait(topic, b"before", partition=0)
        await echo.until(lambda: len(echo.seen) == 1)
        os.kill(echo.pids[-1], signal.SIGKILL)
        await producer.send_and_wait(topic, b"after", partition=0)
        took = await echo.until(lambda: [text for _, text in echo.seen][-1:] == ["after"])
        # On a busy machine Python alone may start for longer than that; what must not be
        # added is the group's wait for the dead member (15 s).
        assert took < max(5.0, 1.5 * echo.started_in + 1.0), f"{took:.1f} s"
        first, last = echo.seen[0][0], echo.seen[-1][0]
        assert first != last


async def test_what_hung_in_a_killed_process_comes_again_though_its_neighbours_were_finished(
    settings, topic, producer, tmp_path
):
    async with supervised(settings, topic, tmp_path) as echo:
        for value in (b"a", b"hang", b"c"):
            await producer.send_and_wait(topic, value, partition=0)
        await echo.until(lambda: len(echo.seen) == 3)
        await asyncio.sleep(0.5)  # so that what may be committed is
        os.kill(echo.pids[-1], signal.SIGKILL)
        await echo.until(lambda: len({pid for pid, _ in echo.seen}) == 2 and len(echo.seen) == 5)
        assert [text for _, text in echo.seen] == ["a", "hang", "c", "hang", "c"]


async def test_a_bug_ends_the_process_with_its_traceback_and_the_record_is_set_aside_in_the_end(
    settings, topic, producer, tmp_path
):
    async with supervised(settings, topic, tmp_path) as echo:
        await producer.send_and_wait(topic, b"bug", partition=0)
        await producer.send_and_wait(topic, b"next", partition=0)
        await echo.until(lambda: len(echo.seen) == 2)
        assert [text for _, text in echo.seen] == ["aside bug", "next"]
        ends = [one.detail for one in echo.reports if one.state is ServiceState.RESTARTING]
        assert len(ends) == 3
        assert all("exited with code 1" in detail for detail in ends)
    assert "ZeroDivisionError: a bug" in (tmp_path / "logs" / "echo-0.log").read_text()


async def test_a_role_ends_cleanly_when_asked_and_is_no_longer_ready(settings, topic, tmp_path):
    async with supervised(settings, topic, tmp_path) as echo:
        assert ready_path(layout_of(tmp_path), "echo-0").exists()
    assert not ready_path(layout_of(tmp_path), "echo-0").exists()
    assert echo.reports[-1].state is ServiceState.STOPPED
    assert "Traceback" not in (tmp_path / "logs" / "echo-0.log").read_text()


async def test_two_readers_share_a_topic_and_the_first_hears_what_it_lost(
    settings, topic, producer
):
    reported: list[tuple[str, frozenset[TopicPartition]]] = []

    async def assigned(partitions: frozenset[TopicPartition]) -> None:
        reported.append(("assigned", partitions))

    async def revoked(partitions: frozenset[TopicPartition]) -> None:
        reported.append(("revoked", partitions))

    bootstrap = settings.event_store.connection.url
    both = frozenset({TopicPartition(topic, 0), TopicPartition(topic, 1)})
    first = KafkaFeed(
        bootstrap,
        [topic],
        group=topic,
        instance="one",
        idle_s=0.1,
        on_assigned=assigned,
        on_revoked=revoked,
    )
    async with first:
        await producer.send_and_wait(topic, b"a", partition=1)
        old = await _take(first)
        second = KafkaFeed(bootstrap, [topic], group=topic, instance="two", idle_s=0.1)
        joining = asyncio.create_task(second.__aenter__())
        async with asyncio.timeout(40), AsyncExitStack() as leaving:
            while not joining.done() or len(reported) < 3:
                await first.next_batch()
            leaving.push_async_exit(second.__aexit__)
            first.acknowledge(old)  # of a partition that may be lost: never an error
            assert first.partitions | second.partitions == both
            assert not first.partitions & second.partitions
            assert reported == [
                ("assigned", both),
                ("revoked", both),
                ("assigned", first.partitions),
            ]
            lost = next(iter(second.partitions)).partition
            await producer.send_and_wait(topic, b"for the second", partition=lost)
            assert "for the second" in [value async for value in _values(second)]


async def _take(feed: KafkaFeed) -> list:
    async with asyncio.timeout(30):
        while not (batch := await feed.next_batch()):
            pass
    return [record for records in batch.values() for record in records]


async def _values(feed: KafkaFeed) -> AsyncIterator[str]:
    async with asyncio.timeout(30):
        while True:
            for record in await _take(feed):
                yield record.value.decode()
                if record.value == b"for the second":
                    return


async def test_authors_have_a_database_of_their_own_and_see_nothing_of_the_log(settings):
    dsn = settings.credentials["pg_local"]["dsn"].get_secret_value()
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("CREATE TEMP TABLE mine AS SELECT 1 AS one")
        assert await connection.fetchval("SELECT current_database()") == "author"
    finally:
        await connection.close()
    database = settings.event_store.canonical_connection.database
    prying = await asyncpg.connect(dsn, database=database)
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await prying.fetch("SELECT * FROM noetl.event")
    finally:
        await prying.close()
