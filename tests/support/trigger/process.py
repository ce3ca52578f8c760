"""A trigger process on a real Kafka and Postgres: what it has, and what is sent to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import asyncpg
import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streams.clock import SystemClock
from streams.kafka.feed.kafka import KafkaFeed
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import Scope
from streams.retry import retry
from streams.trigger.broker import TriggerTopic
from streams.trigger.entries import ReaderIdentity
from streams.trigger.lookup import LedgerReader
from streams.trigger.loop import Trigger, TriggerPorts
from streams.trigger.postgres import PostgresTriggerLedger
from streams.trigger.reconcile import ReconcileReport, reconcile

SCOPE = Scope("acme", "care")
Value = tuple[bytes | None, bytes | None]


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

    def __init__(self, ledger: PostgresTriggerLedger, pool: asyncpg.Pool, **others: Any) -> None:
        self.ledger, self.pool, self.others = ledger, pool, others
        self.payloads: MemoryPayloadStore = others["payloads"]

    def trigger(self, feed: KafkaFeed, ledger: Any = None) -> Trigger:
        ports = TriggerPorts(
            feed=feed, ledger=ledger or self.ledger, clock=SystemClock(), **self.others
        )
        return Trigger(ports, ReaderIdentity(scope=SCOPE), inline_bytes=1000)

    async def starts(self, topic: str) -> list[Any]:
        """Return the first events that the records of a topic brought about."""
        rows = await self.pool.fetch(
            "SELECT * FROM noetl.event WHERE root_id IN ("
            " SELECT coalesce(execution_id, rejected_id) FROM noetl.trigger_ledger"
            " WHERE topic = $1)",
            topic,
        )
        return list(rows)


@asynccontextmanager
async def feeding(bootstrap: str, topic: str, **options: Any) -> AsyncIterator[KafkaFeed]:
    async with KafkaFeed(
        bootstrap, [topic], group=topic, instance="trigger-0", idle_s=0.2, **options
    ) as feed:
        yield feed


async def step(trigger: Trigger, feed: KafkaFeed) -> int:
    """Let a trigger take one batch; return how many records it had."""
    batch = await feed.next_batch()
    await retry(lambda: trigger.take(batch))
    return sum(map(len, batch.values()))


async def drain(trigger: Trigger, feed: KafkaFeed, count: int) -> None:
    """Let a trigger take records until there were `count` of them."""
    async with asyncio.timeout(60):
        while count > 0:
            count -= await step(trigger, feed)
    assert count == 0


def hello(**more: Any) -> bytes:
    return orjson.dumps({"path": "examples/hello", **more})


async def check(bootstrap: str, topic: str, house: House) -> ReconcileReport:
    seen = TriggerTopic(bootstrap, topic, group=topic)
    try:
        topic_id = await house.others["topic_ids"].topic_id(topic)
        return await reconcile(seen, topic_id, LedgerReader(house.pool))
    finally:
        seen.close()
