"""Ranges of a real topic: what was committed, once each, markers and aborted records apart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.clock import SystemClock
from streams.settings import Settings
from streams.worker.rows.kafka_ranges import KafkaPartitions, NoSuchTopic

pytestmark = pytest.mark.stack


@pytest.fixture
async def topic(settings: Settings) -> AsyncIterator[str]:
    bootstrap, name = settings.event_store.connection.url, f"test.offsets.{uuid4().hex}"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, 2, 1)])
        sender = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
        await sender.start()
        try:
            async with sender.transaction():
                for number in range(3):
                    await sender.send(name, b"%d" % number, key=b"k", partition=0)
            await sender.begin_transaction()
            await sender.send_and_wait(name, b"never", partition=0)
            await sender.abort_transaction()
            async with sender.transaction():
                await sender.send(name, b'{"last": true}', partition=0)
        finally:
            await sender.stop()
        yield name
        await admin.delete_topics([name])
    finally:
        await admin.close()


@pytest.fixture
def partitions(settings: Settings) -> KafkaPartitions:
    return KafkaPartitions(settings.event_store.connection.url, SystemClock())


async def test_ranges_cut_anywhere_give_every_committed_record_once(
    topic: str, partitions: KafkaPartitions
) -> None:
    ranges = await partitions.ranges(topic)
    assert ranges == {0: (0, 8), 1: (0, 0)}  # 4 records, 1 aborted, 3 markers
    for size in (1, 3, 8):
        values = []
        for start in range(0, 8, size):
            rows = await partitions.read(topic, 0, start, min(8, start + size))
            values += [row["value"] for row in rows]
        assert values == ["0", "1", "2", {"last": True}]


async def test_a_topic_that_is_not_there_is_named(partitions: KafkaPartitions) -> None:
    with pytest.raises(NoSuchTopic, match=r"no\.such\.topic"):
        await partitions.ranges("no.such.topic")
