"""Batches around a rebalance, with a consumer that stands in for the driver's."""

from __future__ import annotations

from typing import Any

from aiokafka import ConsumerRecord
from aiokafka import TopicPartition as KafkaPartition

from streams.kafka.feed.batch_consumer import KafkaFeed
from streams.kafka.feed.port import TopicPartition

ORDERS = TopicPartition("orders", 0)


def record(offset: int) -> Any:
    return ConsumerRecord("orders", 0, offset, 0, 0, None, b"v", None, 0, 1, ())


class RebalancedConsumer:
    """Is assigned a partition inside its first fetch, at the offset that the group has."""

    def __init__(self) -> None:
        self.feed: KafkaFeed | None = None
        self.position = 5

    async def getmany(self, timeout_ms: int) -> dict[KafkaPartition, list[Any]]:
        assert self.feed is not None
        if not self.feed.partitions:
            self.feed._assigned(frozenset({ORDERS}))
        found, self.position = record(self.position), self.position + 1
        return {KafkaPartition("orders", 0): [found]}

    def seek(self, partition: KafkaPartition, offset: int) -> None:
        self.position = offset


async def test_records_before_a_position_was_set_are_not_delivered() -> None:
    consumer = RebalancedConsumer()

    async def seek(partitions: frozenset[TopicPartition]) -> None:
        await feed.seek(ORDERS, 2)

    feed = KafkaFeed("b", ["orders"], group="g", instance="i", on_assigned=seek)
    feed._consumer, consumer.feed = consumer, feed
    assert await feed.next_batch() == {}
    batch = await feed.next_batch()
    assert [one.offset for one in batch[ORDERS]] == [2]
