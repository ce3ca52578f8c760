"""The subscription tool on a real broker: bounded polls, acknowledged once for each call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.settings import Settings
from streams.worker.port import Call, Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.subscription.tool import SubscriptionTool
from tests.support.worker.tool_calls import CALL

pytestmark = pytest.mark.stack


class Topic:
    """A topic of two partitions, and calls of the tool for one group."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap, self.name = bootstrap, f"poll-{uuid4().hex}"
        self.group = f"group-{self.name}"
        credentials = ConfiguredCredentials({"k": {"brokers": bootstrap}, "e": {"dsn": "x"}}, {})
        self.tool = SubscriptionTool(credentials, "127.0.0.1:9")

    async def create(self, count: int) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(self.name, 2, 1)])
        await admin.close()
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=self.name)
        await producer.start()
        async with producer.transaction():
            for n in range(count):
                value = b'{"n": %d}' % n
                headers = [("h", b"x")]
                await producer.send(self.name, value, key=b"k", partition=n % 2, headers=headers)
        await producer.stop()

    async def run(self, call: Call, **config: Any) -> Outcome:
        asked = {"source": "kafka", "auth": "k", "topic": self.name, "group": self.group}
        return await self.tool.run({**asked, "timeout_ms": 3000, **config}, call)


@pytest.fixture
async def topic(settings: Settings) -> Topic:
    made = Topic(settings.event_store.connection.url)
    await made.create(6)
    return made


def data(outcome: Outcome) -> dict[str, Any]:
    assert outcome.status == "success", outcome.error
    assert isinstance(outcome.data, dict)
    return outcome.data


def numbers(outcome: Outcome) -> list[int]:
    return sorted(one["data"]["n"] for one in data(outcome)["messages"])


def call(number: int, attempt: int = 1) -> Call:
    return replace(CALL, entity_id=number, attempt=attempt)


async def test_polls_go_on_where_the_last_one_ended(topic: Topic) -> None:
    first = await topic.run(call(1), batch=4)
    rest: list[int] = []
    for number in range(2, 6):
        rest += numbers(await topic.run(call(number), batch=4, timeout_ms=1000))
    assert sorted(numbers(first) + rest) == list(range(6))
    assert (data(first)["count"], data(first)["acked"]) == (len(numbers(first)), True)
    [one, *_] = data(first)["messages"]
    place = one["metadata"]
    assert one["id"] == f"{topic.name}:{place['partition']}:{place['offset']}"
    assert (place["key"], one["headers"]) == ("k", {"h": "x"})


async def test_a_second_attempt_gets_the_records_of_the_first(topic: Topic) -> None:
    first = await topic.run(call(1), batch=3)
    again = await topic.run(call(1, attempt=2), batch=3)
    assert numbers(again) == numbers(first)
    other = await topic.run(call(2), batch=3)
    assert not set(numbers(other)) & set(numbers(first))


async def test_what_is_not_acknowledged_is_polled_again(topic: Topic) -> None:
    first = await topic.run(call(1), batch=1, ack="manual")
    assert data(first)["acked"] is False
    await topic.run(call(2), operation="nack", ack_ids=data(first)["ack_ids"])
    seen = [numbers(await topic.run(call(3), ack="none")) for _ in range(4)]
    assert set(numbers(first)) <= {one for some in seen for one in some}
    ack_ids = data(first)["ack_ids"]
    assert data(await topic.run(call(4), operation="ack", ack_ids=ack_ids))["acked"] is True
    assert data(await topic.run(call(4), operation="ack", ack_ids=ack_ids))["acked"] is False
    assert not set(numbers(await topic.run(call(5)))) & set(numbers(first))


async def test_a_group_with_members_is_left_alone(topic: Topic) -> None:
    member = AIOKafkaConsumer(topic.name, bootstrap_servers=topic.bootstrap, group_id=topic.group)
    await member.start()
    try:
        outcome = await topic.run(call(1))
    finally:
        await member.stop()
    assert outcome.error is not None
    assert outcome.error["kind"] == "subscription.refused"
    assert "a group with members" in str(outcome.error["message"])


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"topic": "poll-none"}, "topic 'poll-none' does not exist"),
        ({"source": "pubsub"}, "only kafka can be polled here"),
        ({"group": "noetl.worker.default"}, "belongs to the system"),
        ({"ack": "later"}, "'ack' is 'later'"),
        ({"operation": "drop"}, "'operation' is 'drop'"),
        ({"operation": "ack", "ack_ids": ["x"]}, "not topic:partition:offset"),
        ({"auth": "e"}, "has no 'brokers'"),
    ],
)
async def test_a_poll_that_cannot_be_made_is_refused(
    topic: Topic, config: dict[str, Any], why: str
) -> None:
    outcome = await topic.run(call(1), **config)
    assert outcome.error is not None
    assert why in str(outcome.error["message"])
