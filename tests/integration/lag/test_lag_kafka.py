"""Lag of real groups: records hours apart, a stopped consumer, a rewound group, transactions."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from streams.app import Log, open_log
from streams.kafka.work.item import WorkItem
from streams.lag.core import lag_of
from streams.lag.evaluation import LagStatus
from streams.lag.kafka import ClusterLag, GroupUnknown
from streams.lag.log import lag_log
from streams.lag.model import GroupReading
from streams.settings import Settings
from tests.conftest import NewEventFactory
from tests.support.kafka.topic import KafkaTopic
from tests.support.waiting import until

pytestmark = pytest.mark.stack
HOUR_MS = 3_600_000


@pytest.fixture
async def topic(settings: Settings) -> AsyncIterator[KafkaTopic]:
    made = KafkaTopic(settings.event_store.connection.url)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def cluster(settings: Settings) -> AsyncIterator[ClusterLag]:
    async with ClusterLag(settings.event_store.connection.url) as opened:
        yield opened


def write_hours_apart(topic: KafkaTopic, ages_h: Mapping[int, list[float]]) -> int:
    """Write records of these ages in hours to partitions; return the time they count from."""
    now_ms = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": topic.bootstrap})
    for partition, ages in ages_h.items():
        for age in ages:
            at_ms = now_ms - int(age * HOUR_MS)
            producer.produce(topic.name, b"value", partition=partition, timestamp=at_ms)
    assert producer.flush(30) == 0
    return now_ms


def commit(topic: KafkaTopic, *offsets: Mapping[int, int]) -> None:
    """Commit offsets by partition for the topic's group, one after the other."""
    consumer: Any = Consumer({"bootstrap.servers": topic.bootstrap, "group.id": topic.name})
    for each in offsets:
        places = [TopicPartition(topic.name, number, at) for number, at in each.items()]
        consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


async def read(cluster: ClusterLag, topic: KafkaTopic) -> GroupReading:
    [reading] = await cluster.read([topic.name])
    return reading


async def test_seconds_are_right_where_records_are_hours_apart(
    cluster: ClusterLag, topic: KafkaTopic
) -> None:
    written_ms = write_hours_apart(topic, {0: [9, 5, 2, 0.5], 1: [8, 3]})
    commit(topic, {0: 2, 1: 2})

    reading = await read(cluster, topic)
    waiting, done = lag_of(reading).partitions

    since_s = (reading.at_ms - written_ms) / 1000
    assert (waiting.messages, waiting.messages_stable) == (2, 2)
    assert waiting.seconds == pytest.approx(2 * 3600 + since_s, abs=0.01)
    assert (done.messages, done.seconds, done.status) == (0, 0.0, LagStatus.OK)
    assert sum(one.messages or 0 for one in (waiting, done)) == await topic.lag()


async def test_a_stopped_consumer_is_stop_within_thirty_seconds(
    cluster: ClusterLag, topic: KafkaTopic
) -> None:
    write_hours_apart(topic, {0: [2, 1, 0.5]})
    commit(topic, {0: 1})

    reading = await read(cluster, topic)
    later = replace(reading, at_ms=reading.at_ms + 11_000)

    assert lag_of(reading).total.status is not LagStatus.STOP
    assert lag_of(later).total.status is LagStatus.STOP
    assert reading.partitions[0].commits, "the commit was not found with its time"


async def test_a_group_that_was_reset_is_rewind(cluster: ClusterLag, topic: KafkaTopic) -> None:
    write_hours_apart(topic, {0: [4, 3, 2, 1]})
    commit(topic, {0: 4}, {0: 1})

    lag = lag_of(await read(cluster, topic))

    assert lag.total.status is LagStatus.REWIND
    assert lag.total.seconds == pytest.approx(3 * 3600, abs=60)


async def test_lag_is_counted_to_the_last_stable_offset_as_well(
    cluster: ClusterLag, topic: KafkaTopic
) -> None:
    commit(topic, {0: 0, 1: 0})
    await topic.transaction([(0, "committed")])
    await topic.transaction([(0, "aborted")], aborted=True)
    producer: Any = Producer(
        {"bootstrap.servers": topic.bootstrap, "transactional.id": f"{topic.name}-open"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic.name, b"open", partition=1)
    assert producer.flush(30) == 0

    closed, opened = lag_of(await read(cluster, topic)).partitions
    producer.abort_transaction(30)

    async def is_stable() -> bool:
        reading = await read(cluster, topic)
        return all(one.end == one.stable_end for one in reading.partitions)

    await until(is_stable, within_s=30)
    commit(topic, {0: 2})  # past the committed record and its marker; the aborted one remains
    aborted, _ = lag_of(await read(cluster, topic)).partitions

    assert (closed.messages, closed.messages_stable) == (4, 4)
    assert (opened.messages, opened.messages_stable) == (1, 0)
    assert (opened.seconds or 0) > 0
    assert opened.seconds_stable == 0.0
    assert (aborted.messages, aborted.seconds_stable) == (2, 0.0)


async def test_an_unknown_group_is_refused(cluster: ClusterLag) -> None:
    with pytest.raises(GroupUnknown, match="no consumer group no-such-group"):
        await cluster.read(["no-such-group"])


async def test_the_log_knows_what_is_not_mirrored_and_what_waits(
    database: Settings, new_event: NewEventFactory
) -> None:
    async with open_log(database, role="test") as log:
        await append_command(log, new_event)
    item = WorkItem(
        kind="command",
        tenant_id="acme",
        organization_id="care",
        execution_id=1,
        entity_id=77,
        attempt=1,
        version=1,
        step="start",
        pool="default",
        catalog_id=1,
        catalog_version=1,
    )

    async with lag_log(database) as found:
        all_of_it = await found.not_mirrored([])
        after_the_first = await found.not_mirrored([(1, 1)])
        nothing = await found.not_mirrored([(1, 1), (1, 2)])
        states = await found.item_states([item])

    assert (all_of_it.count, after_the_first.count) == (2, 1)
    assert (nothing.count, nothing.oldest) == (0, None)
    assert states[77].state == "waiting"
    assert states[77].caused_at == all_of_it.oldest


async def append_command(log: Log, new_event: NewEventFactory) -> None:
    """Append an execution's first event, and the command that it caused."""
    [first] = (await log.store.append([new_event()])).events
    await log.store.append(
        [
            new_event(
                type="command.issued",
                node_name="start",
                causation_id=first.event_id,
                meta={
                    "command_id": "77",
                    "attempt": 1,
                    "pool": "default",
                    "tool": "noop",
                    "activation": 1,
                },
            )
        ]
    )
