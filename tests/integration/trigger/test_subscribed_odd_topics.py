"""Subscriptions on topics that end with markers, lose records, or are made again."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.support.subscription.process import SubscribedHouse, send_records
from tests.support.trigger.process import make_topic, read_all
from tests.support.waiting import until

pytestmark = pytest.mark.stack


def lag_of_the_tool(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Return what `kafka-consumer-groups --describe` prints: ends are read uncommitted."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    places = [TopicPartition(topic, number) for number in range(partitions)]
    asked = [ConsumerGroupTopicPartitions(group, places)]
    found = admin.list_consumer_group_offsets(asked)[group].result(10)
    ends = admin.list_offsets(
        {place: OffsetSpec.latest() for place in places},
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
    )
    at = {one.partition: one.offset for one in found.topic_partitions if one.offset >= 0}
    return {
        place.partition: end.result(10).offset - at[place.partition]
        for place, end in ends.items()
        if place.partition in at
    }


async def test_a_caught_up_group_has_no_lag_for_kafkas_own_tool(
    subscribed: SubscribedHouse, bootstrap: str
) -> None:
    """One partition ends with an aborted transaction, one with a committed one, one is empty."""
    topic = make_topic(bootstrap, "ends", 3)
    await subscribed.register(topic)
    _, subscription = await subscribed.subscribed()
    assert subscription.kafka is not None
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic) as sender:
        for is_aborted in (False, True):
            await sender.begin_transaction()
            await sender.send(topic, b'{"n": 1}', partition=0 if is_aborted else 1)
            await sender.send(topic, b'{"n": 2}', partition=0)
            await (sender.abort_transaction() if is_aborted else sender.commit_transaction())
    group = subscription.kafka.group

    async def is_caught_up() -> bool:
        found = await asyncio.to_thread(lag_of_the_tool, bootstrap, group, topic, 3)
        return found == {0: 0, 1: 0, 2: 0}

    async with subscribed.running():
        await subscribed.until_rows(2)
        await until(is_caught_up, within_s=30, every_s=0.2)


async def test_a_topic_that_was_made_again_while_nothing_ran_is_read_from_its_first_record(
    subscribed: SubscribedHouse, bootstrap: str
) -> None:
    topic = make_topic(bootstrap, "remade", 2)
    await subscribed.register(topic)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    await send_records(bootstrap, topic, *({"value": b'{"n": %d}' % n} for n in range(5)))
    async with subscribed.running():
        await subscribed.until_rows(5)
        await subscribed.until_caught_up()
    admin.delete_topics([topic])[topic].result(10)
    await until(lambda: topic not in admin.list_topics(timeout=5).topics, every_s=0.2)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(10)
    await send_records(bootstrap, topic, *({"value": b'{"n": %d}' % n} for n in range(10, 13)))
    async with subscribed.running():
        await subscribed.until_rows(8)
        await subscribed.until_caught_up()
    assert sorted(one["n"] for one in await subscribed.workloads()) == [*range(5), 10, 11, 12]
    state, reader, ledger = await subscribed.topic()
    report = await reader.reconcile(state, ledger)
    assert (report.is_whole, report.waiting) == (True, 0)


async def test_a_record_of_1_mb_that_cannot_be_used_is_a_dead_letter_without_its_value(
    subscribed: SubscribedHouse, bootstrap: str
) -> None:
    topic = make_topic(bootstrap, "large")
    await subscribed.register(topic)
    bad, last = b"{" + b"x" * 1_048_400, orjson.dumps({"n": 1})
    await send_records(bootstrap, topic, {"key": b"k", "value": bad}, {"value": last})
    async with subscribed.running():
        await subscribed.until_rows(2)
        await subscribed.until_caught_up()
    rejected, started = await subscribed.rows()
    assert (rejected["event_type"], started["event_type"]) == (
        "trigger.rejected",
        "playbook.initialized",
    )
    (letter,) = await read_all(bootstrap, subscribed.dead_letters._topic)
    headers = dict(letter.headers)
    assert headers["dead-letter-value-omitted-bytes"] == b"%d" % len(bad)
    assert headers["dead-letter-offset"] == b"0"
    stored = [orjson.loads(data) for data in subscribed.payloads.objects.values()]
    assert any(len(one.get("value_base64") or "") > len(bad) for one in stored)
