"""A transaction that nobody ends holds readers up until it is ended by hand."""

from __future__ import annotations

from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streams.kafka.errors import BrokerUnavailable
from streams.mirror.hanging import Lookout, end_hanging, written_topics
from streams.settings import Settings

pytestmark = pytest.mark.stack


def read(bootstrap: str, topic: str) -> list[bytes | None]:
    """Return what a reader of committed records finds before it waits."""
    config = {"bootstrap.servers": bootstrap, "group.id": uuid4().hex}
    config |= {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = Consumer(config)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(10, timeout=3)
        return [record.value() for record in found if record.error() is None]
    finally:
        consumer.close()


async def test_a_transaction_that_hangs_is_found_and_ended(settings: Settings) -> None:
    bootstrap, topic = settings.event_store.connection.url, f"test.hanging.{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    config = {"bootstrap.servers": bootstrap, "transaction.timeout.ms": 600_000}
    hung = Producer({**config, "transactional.id": uuid4().hex})
    hung.init_transactions()
    hung.begin_transaction()
    hung.produce(topic, b"never committed", timestamp=1)  # as old as what a refill writes
    hung.flush()
    plain = Producer({"bootstrap.servers": bootstrap})
    plain.produce(topic, b"behind it")
    plain.flush()
    assert read(bootstrap, topic) == []
    patient = Lookout(bootstrap, [topic])
    assert (await patient.look(), patient.is_waiting) == ((), True)  # it may be at work

    [found] = await Lookout(bootstrap, [topic], after_s=0).look()
    assert (found.topic, found.partition, found.offset) == (topic, 0, 0)
    assert f"hangs on {topic}-0 at offset 0" in str(found)
    await end_hanging(bootstrap, [found])

    assert read(bootstrap, topic) == [b"behind it"]
    assert (await patient.look(), patient.is_waiting) == ((), False)
    admin.delete_topics([topic])[topic].result()


async def test_a_mirror_at_work_has_none(settings: Settings) -> None:
    assert "noetl.events.execution" in written_topics()
    assert await Lookout(settings.event_store.connection.url).look() == ()


async def test_a_broker_that_is_down_is_said() -> None:
    with pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:9"):
        await Lookout("127.0.0.1:9").look()
