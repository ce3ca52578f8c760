"""Trigger records on a real Kafka and Postgres: one execution each, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

import asyncpg
import orjson
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from streams.app import open_log, open_pool, producer
from streams.clock import SystemClock
from streams.envelope.registry import MemoryRegistry
from streams.feed.dead_letters import KafkaDeadLetters
from streams.feed.errors import FeedUnavailable
from streams.feed.kafka import KafkaFeed
from streams.feed.port import Place, Record
from streams.payload.memory import MemoryPayloadStore
from streams.settings import Settings
from streams.trigger.avro import TriggerReader
from streams.trigger.broker import TriggerTopic
from streams.trigger.follow import Follower, NotYet, TriggerRejected
from streams.trigger.kafka import KafkaTopicIds
from streams.trigger.lookup import LedgerReader
from streams.trigger.loop import Ports, Trigger
from streams.trigger.memory import MemoryPlaybooks
from streams.trigger.port import Origin
from streams.trigger.postgres import PostgresLedger
from streams.trigger.publish import publish
from streams.trigger.reconcile import Report, reconcile
from streams.work.reply import KafkaReplies, ReplyRefused
from tests.logs import dsn, event
from tests.triggers import HELLO

pytestmark = pytest.mark.stack

Value = tuple[bytes | None, bytes | None]


class Killed(Exception):
    """The process is gone, in the middle of something."""


class DyingLedger:
    """Enters some batches; then the process is killed right after a commit."""

    def __init__(self, inner: PostgresLedger, batches: int) -> None:
        self._inner, self._left = inner, batches

    async def enter(self, entries: Sequence[Any]) -> Any:
        answers = await self._inner.enter(entries)
        self._left -= 1
        if self._left == 0:
            raise Killed
        return answers


@pytest.fixture
def bootstrap(settings: Settings) -> str:
    return settings.event_store.connection.url


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A trigger topic of this test's own."""
    return make_topic(bootstrap, "triggers", 2)


def make_topic(bootstrap: str, name: str, partitions: int = 1) -> str:
    name = f"test.{name}.{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(10)
    return name


async def send(bootstrap: str, topic: str, values: Sequence[Value], **where: Any) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as sender:
        sent = [await sender.send(topic, value, key=key, **where) for key, value in values]
        await asyncio.gather(*sent)


async def read_all(bootstrap: str, topic: str, partitions: int = 1) -> list[Any]:
    places = [TopicPartition(topic, number) for number in range(partitions)]
    found: list[Any] = []
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign(places)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(places)
        while len(found) < sum(ends.values()):
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += records
    return found


class House:
    """Everything a trigger process has, but its feed."""

    def __init__(self, ledger: PostgresLedger, pool: asyncpg.Pool, **others: Any) -> None:
        self.ledger, self.pool, self.others = ledger, pool, others
        self.payloads: MemoryPayloadStore = others["payloads"]

    def trigger(self, feed: KafkaFeed, ledger: Any = None) -> Trigger:
        ports = Ports(feed=feed, ledger=ledger or self.ledger, clock=SystemClock(), **self.others)
        return Trigger(ports, tenant="acme", organization="care", inline_bytes=1000)

    async def starts(self, topic: str) -> list[Any]:
        """Return the first events that the records of a topic brought about."""
        rows = await self.pool.fetch(
            "SELECT * FROM noetl.event WHERE root_id IN ("
            " SELECT coalesce(execution_id, rejected_id) FROM noetl.trigger_ledger"
            " WHERE topic = $1)",
            topic,
        )
        return list(rows)


@pytest.fixture
async def house(database: Settings, bootstrap: str) -> AsyncIterator[House]:
    dead = make_topic(bootstrap, "dead")
    async with (
        open_log(database, role="triggers") as log,
        open_pool(dsn(database, "append")) as pool,
        KafkaDeadLetters(bootstrap, topic=dead) as dead_letters,
    ):
        yield House(
            PostgresLedger(
                pool,
                codec=log.codec,
                take_ids=log.ids.take,
                producer=producer(database, "triggers"),
            ),
            pool,
            playbooks=MemoryPlaybooks({"examples/hello": [HELLO]}),
            topic_ids=KafkaTopicIds(bootstrap, SystemClock()),
            payloads=MemoryPayloadStore(),
            dead_letters=dead_letters,
            reader=TriggerReader(MemoryRegistry()),
            take_ids=log.ids.take,
        )


@asynccontextmanager
async def feeding(bootstrap: str, topic: str, **options: Any) -> AsyncIterator[KafkaFeed]:
    async with KafkaFeed(
        bootstrap, [topic], group=topic, instance="trigger-0", idle_s=0.2, **options
    ) as feed:
        yield feed


async def drain(trigger: Trigger, count: int) -> None:
    """Let a trigger handle records until there were `count` of them."""
    async with asyncio.timeout(60):
        while count > 0:
            count -= await trigger.step()
    assert count == 0


def hello(**more: Any) -> bytes:
    return orjson.dumps({"path": "examples/hello", **more})


async def check(bootstrap: str, topic: str, house: House) -> Report:
    seen = TriggerTopic(bootstrap, topic, group=topic)
    try:
        topic_id = await house.others["topic_ids"].topic_id(topic)
        return await reconcile(seen, topic_id, LedgerReader(house.pool))
    finally:
        seen.close()


async def test_triggers_sent_twice_with_a_kill_between_start_one_execution_each(
    house: House, bootstrap: str, topic: str
) -> None:
    wanted = [(f"order-{topic}-{n}".encode(), hello(workload={"n": n})) for n in range(200)]
    await send(bootstrap, topic, wanted)
    await send(bootstrap, topic, wanted[::-1])
    async with feeding(bootstrap, topic, max_records=40) as feed:
        with pytest.raises(Killed):
            await drain(house.trigger(feed, DyingLedger(house.ledger, 4)), 400)
    async with feeding(bootstrap, topic) as feed:
        trigger = house.trigger(feed)
        async with asyncio.timeout(60):
            while (await check(bootstrap, topic, house)).waiting:
                await trigger.step()
    starts = await house.starts(topic)
    assert len(starts) == 200
    assert {orjson.loads(row["context"])["workload"]["n"] for row in starts} == set(range(200))
    keys = await house.pool.fetchval(
        "SELECT count(DISTINCT execution_id) FROM noetl.trigger_ledger WHERE topic = $1", topic
    )
    rows = await house.pool.fetchval(
        "SELECT count(*) FROM noetl.trigger_ledger WHERE topic = $1", topic
    )
    assert (keys, rows) == (200, 400)
    report = await check(bootstrap, topic, house)
    assert (report.missing, report.waiting, report.beyond) == (0, 0, 0)


async def test_a_first_event_says_all_that_was_asked(
    house: House, bootstrap: str, topic: str
) -> None:
    big = {"text": "1e5" * 1000}
    body = hello(version=2, workload=big, tenant="globex", reply_to="answers", correlation_id="c7")
    await send(bootstrap, topic, [(None, body)])
    async with feeding(bootstrap, topic) as feed:
        await drain(house.trigger(feed), 1)
    (row,) = await house.starts(topic)
    assert (row["tenant_id"], row["organization_id"]) == ("globex", "care")
    assert (row["catalog_id"], row["correlation_id"]) == (HELLO.catalog_id, "c7")
    meta = {"path": "examples/hello", "version": 2, "reply_to": "answers"}
    assert orjson.loads(row["meta"]) == meta
    assert row["context"] is None
    (stored,) = house.payloads.objects.values()
    assert orjson.loads(stored) == {"workload": big}


async def test_bad_records_reach_the_dead_letters_and_the_partition_moves_on(
    house: House, bootstrap: str, topic: str
) -> None:
    bad: list[Value] = [
        (b"k1", b"{"),
        (b"k2", orjson.dumps({"path": "examples/unknown"})),
        (b"k3", hello(reply_to="noetl.triggers", workload=[])),
        (b"k4", hello(workload={"nul": "a\0b"})),
        (b"k5", None),
    ]
    values = [one for pair in zip(bad, [(None, hello())] * 5, strict=True) for one in pair]
    await send(bootstrap, topic, values, partition=1)
    await send(bootstrap, topic, [(None, hello())], partition=0)
    async with feeding(bootstrap, topic) as feed:
        await drain(house.trigger(feed), 11)
    letters = await read_all(bootstrap, house.others["dead_letters"]._topic)
    assert [(one.key, one.value) for one in letters] == bad
    told = [{name: value.decode() for name, value in one.headers} for one in letters]
    assert [one["dead-letter-offset"] for one in told] == ["0", "2", "4", "6", "8"]
    assert {(one["dead-letter-topic"], one["dead-letter-partition"]) for one in told} == {
        (topic, "1")
    }
    reasons = [one["dead-letter-reason"] for one in told]
    assert reasons[0].startswith("the value is not JSON")
    assert reasons[1] == "path: no playbook examples/unknown is registered"
    assert "workload: " in reasons[2]
    assert "reply_to: " in reasons[2]
    assert "nul" in reasons[3]
    rows = await house.starts(topic)
    errors = sorted(row["error"] for row in rows if row["event_type"] == "trigger.rejected")
    assert errors == sorted(reasons)
    assert sum(row["event_type"] == "playbook.initialized" for row in rows) == 6
    stored = [orjson.loads(one) for one in house.payloads.objects.values()]
    assert {one["offset"] for one in stored} == {0, 2, 4, 6, 8}
    assert (await check(bootstrap, topic, house)).missing == 0


async def test_a_record_without_anything_and_one_as_large_as_can_be_are_dead_letters(
    house: House, bootstrap: str
) -> None:
    letters = house.others["dead_letters"]
    place = Place("somewhere", 3)
    await letters.put(Record(place, 1, None, None, (), 0), "empty", kind="work")
    await letters.put(Record(place, 2, b"k", bytes(1_048_500), (), 0), "large", kind="work")
    empty, large = await read_all(bootstrap, letters._topic)
    assert ("dead-letter-value-was-null", b"true") in empty.headers
    assert ("dead-letter-value-omitted-bytes", b"1048500") in large.headers
    assert ("dead-letter-reason", b"large") in large.headers


async def test_reconciling_names_a_planted_gap_and_no_transaction_marker(
    house: House, database: Settings, bootstrap: str, topic: str
) -> None:
    sender = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    async with sender:
        for ends_well in (True, False, True):
            await sender.begin_transaction()
            for _ in range(4):
                await sender.send_and_wait(topic, hello(), partition=0)
            await (sender.commit_transaction() if ends_well else sender.abort_transaction())
    async with feeding(bootstrap, topic) as feed:
        await drain(house.trigger(feed), 8)
    assert (await check(bootstrap, topic, house)).missing == 0
    async with open_pool(dsn(database)) as owner:
        await owner.execute(
            "DELETE FROM noetl.trigger_ledger WHERE topic = $1 AND record_offset IN (1, 2, 10)",
            topic,
        )
    await send(bootstrap, topic, [(None, hello())] * 2, partition=0)
    report = await check(bootstrap, topic, house)
    gaps = [(gap.first, gap.last, gap.records, gap.state) for gap in report.sides[0].gaps]
    assert gaps == [
        (1, 2, 2, "missing"),
        (10, 10, 1, "missing"),
        (15, 16, 2, "waiting"),
    ]
    assert (report.missing, report.waiting) == (3, 2)
    assert report.sides[1].gaps == ()


async def test_a_topic_made_anew_has_another_id_once_it_is_asked_for_again(
    bootstrap: str, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    ids = KafkaTopicIds(bootstrap, SystemClock())
    before = await ids.topic_id(topic)
    admin.delete_topics([topic])[topic].result(10)
    assert await ids.topic_id(topic) == before
    async with asyncio.timeout(20):
        while await made_again(admin, topic, ids) in (None, before):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def made_again(admin: AdminClient, topic: str, ids: KafkaTopicIds) -> str | None:
    """Make a topic and return its new id; None while the broker is not ready for it."""
    ids.forget()
    try:
        with suppress(KafkaException):  # it is there already, old or new
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(10)
        return await ids.topic_id(topic)
    except FeedUnavailable:
        return None


async def test_a_published_trigger_tells_where_it_stands(bootstrap: str, topic: str) -> None:
    first = await publish(bootstrap, {"path": "examples/hello"}, key="k", topic=topic)
    second = await publish(bootstrap, {"path": "examples/hello"}, key="k", topic=topic)
    assert first[0] == second[0]
    assert (first[1], second[1]) == (0, 1)


@pytest.mark.parametrize(
    ("ending", "columns", "status"),
    [
        ("playbook.completed", {"status": "COMPLETED", "result": {"n": 7}}, "COMPLETED"),
        ("playbook.failed", {"status": "FAILED", "error": "step load: no such table"}, "FAILED"),
        ("execution.cancelled", {"status": "CANCELLED", "meta": {"by": "Ada"}}, "CANCELLED"),
    ],
)
async def test_whoever_waits_is_told_how_the_execution_ended(
    house: House,
    database: Settings,
    bootstrap: str,
    topic: str,
    ending: str,
    columns: dict[str, Any],
    status: str,
) -> None:
    place, offset = await publish(bootstrap, {"path": "examples/hello"}, topic=topic)
    topic_id = await house.others["topic_ids"].topic_id(topic)
    origin = Origin(topic_id, place.partition, offset, topic)
    async with open_log(database, role="planner") as log:
        follower = Follower(LedgerReader(house.pool), log.store, SystemClock(), timeout_s=20)
        waiting = asyncio.create_task(follower.execution(origin))
        async with feeding(bootstrap, topic) as feed:
            await drain(house.trigger(feed), 1)
        execution_id = await waiting
        fields = {"meta": {}, "result": None, "error": None, "payload_ref": None, **columns}
        await log.store.append([replace(event(execution_id, ending), tenant_id="acme", **fields)])
        found = await follower.end(execution_id)
    assert (found.status, found.is_well) == (status, status == "COMPLETED")
    assert (found.event.result, found.event.error) == (columns.get("result"), columns.get("error"))


async def test_whoever_waits_is_told_that_it_was_rejected_or_never_judged(
    house: House, database: Settings, bootstrap: str, topic: str
) -> None:
    place, offset = await publish(bootstrap, {"path": "examples/unknown"}, topic=topic)
    topic_id = await house.others["topic_ids"].topic_id(topic)
    async with open_log(database, role="planner") as log:

        async def follow(offset: int) -> int:
            ledger = LedgerReader(house.pool)
            follower = Follower(ledger, log.store, SystemClock(), timeout_s=0.1)
            return await follower.execution(Origin(topic_id, place.partition, offset, topic))

        with pytest.raises(NotYet, match="was not judged within"):
            await follow(offset)
        async with feeding(bootstrap, topic) as feed:
            await drain(house.trigger(feed), 1)
        with pytest.raises(TriggerRejected, match="no playbook examples/unknown is registered"):
            await follow(offset)


async def test_a_reply_to_a_topic_that_nobody_made_is_refused_at_once(bootstrap: str) -> None:
    async with KafkaReplies(bootstrap) as replies, asyncio.timeout(5):
        with pytest.raises(ReplyRefused, match="make the topic"):
            await replies.send("test.nobody.made.it", 41, {})
