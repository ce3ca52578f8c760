"""A topic of a bench's own, with records of chosen ages and a group that reads half of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from aiokafka.admin import NewTopic
from confluent_kafka import TopicPartition

from streams.kafka.clients import (
    admin,
    async_admin,
    groupless_consumer,
    member_consumer,
    single_send_producer,
    started,
)
from streams.lag.first_records import Partition

_TIMEOUT_S = 30.0


class LagTopic:
    """The topic, its group of the same name, and the broker's figures by another driver."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.name, self._bootstrap = name, bootstrap
        self._producer = single_send_producer(bootstrap, timeout_s=_TIMEOUT_S)

    def write(self, ages_s: Mapping[int, Sequence[float]]) -> float:
        """Write records of these ages to partitions; return the time the ages count from."""
        now = time.time()
        for partition, ages in ages_s.items():
            for age in ages:
                at_ms = int((now - age) * 1000)
                self._producer.produce(self.name, b"x", partition=partition, timestamp=at_ms)
                self._producer.poll(0)
        self._producer.flush(_TIMEOUT_S)
        return now

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit offsets for the group."""
        consumer: Any = member_consumer(self._bootstrap, group=self.name)
        places = [TopicPartition(self.name, *one) for one in offsets.items()]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()

    def consume(self, count: int) -> Any:
        """Join the group, consume about `count` records and commit; return the paused consumer."""
        consumer: Any = member_consumer(self._bootstrap, group=self.name)
        consumer.subscribe([self.name])
        seen, deadline = 0, time.monotonic() + _TIMEOUT_S
        while seen < count and time.monotonic() < deadline:
            seen += len(consumer.consume(500, timeout=0.5))
        consumer.commit(asynchronous=False)
        consumer.pause(consumer.assignment())
        return consumer


@asynccontextmanager
async def lag_topic(bootstrap: str, partitions: int) -> AsyncIterator[LagTopic]:
    """Create a topic, and delete it in the end with its group."""
    name = f"bench.lag.{uuid4().hex[:8]}"
    client = await started(async_admin(bootstrap))
    try:
        await client.create_topics([NewTopic(name, partitions, 1)])
        yield LagTopic(bootstrap, name)
        await client.delete_topics([name])
        await asyncio.to_thread(_delete_group, bootstrap, name)
    finally:
        await client.close()


def _delete_group(bootstrap: str, group: str) -> None:
    client = admin(bootstrap)  # held: its end would cancel the request
    for future in client.delete_consumer_groups([group]).values():
        future.result(_TIMEOUT_S)


async def broker_lags(bootstrap: str, groups: Sequence[str]) -> dict[tuple[str, Partition], int]:
    """Return end minus committed offset of each partition, as kafka-consumer-groups does."""
    client = await started(async_admin(bootstrap))
    consumer = await started(groupless_consumer(bootstrap, is_committed=False))
    try:
        found = {}
        for group in groups:
            committed = await client.list_consumer_group_offsets(group)
            ends = await consumer.end_offsets(list(committed)) if committed else {}
            for one, end in ends.items():
                found[group, (one.topic, one.partition)] = end - committed[one].offset
        return found
    finally:
        await consumer.stop()
        await client.close()
