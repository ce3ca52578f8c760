"""Topics of the bench of tables, and records that are written without transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiokafka.admin import NewTopic
from aiokafka.structs import TopicPartition

from streams.dev.bench.table_options import PARTITIONS
from streams.kafka.clients import async_admin, groupless_consumer, idempotent_producer, started
from streams.kafka.topic_creation import COMPACTED

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

WAITING = 64
"""Batches that wait for their acknowledgement."""
Row = tuple[bytes | None, bytes]


@asynccontextmanager
async def topics(
    bootstrap: str, names: Iterable[str], *, compacted: Iterable[str]
) -> AsyncIterator[None]:
    """Create topics; delete them when the body ends."""
    wanted = [NewTopic(name, PARTITIONS, 1) for name in names]
    wanted += [NewTopic(name, PARTITIONS, 1, topic_configs=COMPACTED) for name in compacted]
    admin = async_admin(bootstrap)
    await admin.start()
    try:
        await admin.create_topics(wanted)
        yield
        await admin.delete_topics([one.name for one in wanted])
    finally:
        await admin.close()


@asynccontextmanager
async def plain_producer(bootstrap: str) -> AsyncIterator[AIOKafkaProducer]:
    """Open a producer without transactions."""
    producer = await started(idempotent_producer(bootstrap))
    try:
        yield producer
    finally:
        await producer.stop()


async def write_plain(
    producer: AIOKafkaProducer, topic: str, partition: int, rows: Iterable[Row]
) -> None:
    """Write records in batches of the driver's default size."""
    sent, batch = [], producer.create_batch()
    for key, value in rows:
        if batch.append(key=key, value=value, timestamp=None) is None:
            batch.close()
            sent.append(await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
            batch.append(key=key, value=value, timestamp=None)
            if len(sent) > WAITING:
                await sent.pop(0)
    batch.close()
    sent.append(await producer.send_batch(batch, topic, partition=partition))
    for one in sent:
        await one


async def uncommitted(bootstrap: str, group: str, topic: str) -> int:
    """Return the offsets of a topic that a group has not committed; markers count, too."""
    wanted = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    admin, reader = async_admin(bootstrap), await started(groupless_consumer(bootstrap))
    try:
        await admin.start()
        committed = await admin.list_consumer_group_offsets(group, partitions=wanted)
        ends = await reader.end_offsets(wanted)
        return sum(end - max(0, committed[one].offset) for one, end in ends.items())
    finally:
        await admin.close()
        await reader.stop()
