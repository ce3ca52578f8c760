"""Declared topics on a real broker: made, changed, refused and left alone.

The broker is shared, so every test has topics of its own and removes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from aiohttp.test_utils import unused_port
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from streams.cli import cli
from streams.kafka.errors import BrokerUnavailable
from streams.resources import folder
from streams.settings import Settings
from streams.topology import Topic, Topology, load
from streams.topology.broker import TopicAdmin, TopicsRefused
from streams.topology.changes import Create, Grow, Reconfigure

pytestmark = pytest.mark.stack


@pytest.fixture
def broker(settings: Settings) -> TopicAdmin:
    return TopicAdmin(settings.event_store.connection.url)


@pytest.fixture
def topic(settings: Settings) -> Iterator[Topic]:
    declared = Topic(
        name=f"noetl.test.{uuid4().hex}",
        partitions=2,
        replication=1,
        retention="1h",
        cleanup="delete",
        key="thing id",
        schema=None,
        writer="test",
        readers=("test",),
        why="A test.",
    )
    yield declared
    admin = AdminClient({"bootstrap.servers": settings.event_store.connection.url})
    if declared.name in admin.list_topics(timeout=10).topics:
        admin.delete_topics([declared.name])[declared.name].result()


def write_one(settings: Settings, topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": settings.event_store.connection.url})
    producer.produce(topic.name, b"x", key=b"k")
    assert producer.flush(10) == 0


def test_a_missing_topic_is_made_and_then_there_is_nothing_to_do(
    broker: TopicAdmin, topic: Topic
) -> None:
    wanted = Topology((topic,))
    assert broker.plan(wanted).steps == (Create(topic),)
    assert broker.apply(wanted) == (Create(topic),)
    assert broker.apply(wanted) == ()
    assert broker.plan(wanted).settled


def test_a_topic_can_be_written_as_soon_as_apply_returns(
    settings: Settings, broker: TopicAdmin, topic: Topic
) -> None:
    broker.apply(Topology((topic,)))
    metadata = AdminClient({"bootstrap.servers": settings.event_store.connection.url}).list_topics(
        timeout=10
    )
    partitions = metadata.topics[topic.name].partitions
    assert len(partitions) == 2
    assert all(one.leader in metadata.brokers for one in partitions.values())


def test_several_at_once_all_succeed_and_one_makes_it(settings: Settings, topic: Topic) -> None:
    def apply(_: int) -> tuple[Any, ...]:
        return TopicAdmin(settings.event_store.connection.url).apply(Topology((topic,)))

    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(apply, range(4)))
    assert sorted(taken, key=len) == [(), (), (), (Create(topic),)]


def test_a_changed_setting_reaches_the_broker(broker: TopicAdmin, topic: Topic) -> None:
    broker.apply(Topology((topic,)))
    shorter = Topology((replace(topic, retention="5m"),))
    assert broker.apply(shorter) == (
        Reconfigure(topic.name, {"retention.ms": "300000"}, {"retention.ms": "3600000"}),
    )
    assert broker.plan(shorter).settled


def test_a_keyed_topic_grows_only_while_it_never_held_a_record(
    settings: Settings, broker: TopicAdmin, topic: Topic
) -> None:
    broker.apply(Topology((topic,)))
    three = Topology((replace(topic, partitions=3),))
    assert broker.apply(three) == (Grow(topic.name, 3, 2),)
    write_one(settings, topic)
    four = Topology((replace(topic, partitions=4),))
    with pytest.raises(TopicsRefused, match="keys would move"):
        broker.apply(four)
    assert broker.plan(three).settled, "nothing was changed"


def test_a_topic_without_key_grows_with_records_in_it(
    settings: Settings, broker: TopicAdmin, topic: Topic
) -> None:
    plain = replace(topic, key=None)
    broker.apply(Topology((plain,)))
    write_one(settings, topic)
    assert broker.apply(Topology((replace(plain, partitions=4),))) == (Grow(topic.name, 4, 2),)


def test_an_undeclared_topic_of_ours_is_named_and_survives(
    broker: TopicAdmin, topic: Topic
) -> None:
    broker.apply(Topology((topic,)))
    other = replace(topic, name=f"{topic.name}.other")
    assert topic.name in broker.plan(Topology((other,))).extra
    assert broker.plan(Topology((topic,))).settled


def test_what_the_broker_forbids_is_told_in_its_words(broker: TopicAdmin, topic: Topic) -> None:
    bad = replace(topic, config={"segment.bytes": "many"})
    with pytest.raises(TopicsRefused, match=r"create noetl\.test\..*segment\.bytes"):
        broker.apply(Topology((bad,)))


def test_more_replicas_than_brokers_are_refused(broker: TopicAdmin, topic: Topic) -> None:
    with pytest.raises(TopicsRefused, match="Kafka refuses"):
        broker.apply(Topology((replace(topic, replication=3),)))


def test_a_single_broker_takes_the_local_profile(broker: TopicAdmin) -> None:
    assert broker.profile() == "local"


def test_the_declared_topics_are_on_the_stack_as_declared(settings: Settings) -> None:
    environment = {"STREAMS__EVENT_STORE__CONNECTION__URL": settings.event_store.connection.url}
    run = CliRunner().invoke(cli, ["topics", "apply", "--json"], env=environment)
    assert run.exit_code == 0, run.output
    again = CliRunner().invoke(cli, ["topics", "plan", "--json"], env=environment)
    report = json.loads(again.output)
    assert report["settled"]
    assert not {topic.name for topic in load(folder("topics")).topics} & set(report["extra"])


def test_no_broker_is_unavailable_and_says_what_to_do() -> None:
    nowhere = TopicAdmin(f"127.0.0.1:{unused_port()}", timeout_s=1)
    with pytest.raises(BrokerUnavailable, match=r"check that it is up and that event_store\.conn"):
        nowhere.profile()
