"""What every sender of replies promises, in memory and on Kafka alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streams.clock import SystemClock
from streams.kafka.replies import KafkaReplies, MemoryReplies, Replies, ReplyRefused

PARTITIONS = 3
Sent = list[tuple[int, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Subject:
    """A sender, a topic that is nobody's, and a way to read it."""

    replies: Replies
    topic: str
    read: Callable[[], Awaitable[Sent]]


@pytest.fixture
async def subject(bootstrap: str | None) -> AsyncIterator[Subject]:
    topic = f"test.replies.{uuid4().hex}"
    if bootstrap is None:
        memory = MemoryReplies()

        async def kept() -> Sent:
            return sorted(memory.sent.get(topic, []))

        yield Subject(memory, topic, kept)
        return
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(10)

    async def published() -> Sent:
        return await _published(bootstrap, topic)

    async with KafkaReplies(bootstrap) as replies:
        yield Subject(replies, topic, published)


async def _published(bootstrap: str, topic: str) -> Sent:
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found: Sent = []
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign(places)
        await consumer.seek_to_beginning()
        count = sum((await consumer.end_offsets(places)).values())
        while len(found) < count:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += [(int(one.key), orjson.loads(one.value)) for one in records]
    return sorted(found)


async def test_a_reply_arrives_as_it_was_sent(subject: Subject) -> None:
    await subject.replies.send(subject.topic, 41, {"status": "COMPLETED", "result": ["1e5", None]})
    assert await subject.read() == [(41, {"status": "COMPLETED", "result": ["1e5", None]})]


async def test_a_reply_that_may_have_been_sent_is_sent_once(subject: Subject) -> None:
    ended_at = SystemClock().now()
    await subject.replies.send(subject.topic, 41, {}, maybe_sent=True)
    await subject.replies.send(subject.topic, 42, {})
    await subject.replies.send(subject.topic, 42, {}, maybe_sent=True)
    for _ in range(2):
        await subject.replies.send(subject.topic, 43, {}, maybe_sent=True, since=ended_at)
    assert [execution_id for execution_id, _ in await subject.read()] == [41, 42, 43]


async def test_no_reply_goes_to_a_topic_of_the_system(subject: Subject) -> None:
    with pytest.raises(ReplyRefused, match="a topic of the system"):
        await subject.replies.send("noetl.triggers", 41, {})
