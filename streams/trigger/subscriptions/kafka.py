"""A subscription's topic in Kafka."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp

from streams.catalog.subscription_state import ReplayRange
from streams.clock import Clock
from streams.kafka.feed.kafka import KafkaFeed
from streams.kafka.feed.port import Notice, Record, TopicPartition
from streams.schema.registry import SchemaRegistry
from streams.schema.registry_external import ExternalRegistry, RegistryClient
from streams.subscription.bodies import BodyReader
from streams.subscription.model import Subscription
from streams.trigger.kafka import KafkaTopicIds
from streams.trigger.subscriptions.range_records import range_records


class KafkaSubscriptionSource:
    """Opens the topic of a subscription, and the registry of its schemas."""

    def __init__(
        self,
        brokers: str,
        subscription: Subscription,
        *,
        instance: str,
        registry: SchemaRegistry,
        clock: Clock,
    ) -> None:
        assert subscription.kafka is not None
        self._brokers, self._subscription, self._kafka = brokers, subscription, subscription.kafka
        self._instance, self._registry = instance, registry
        self.topic_ids = KafkaTopicIds(brokers, clock)

    def feed(self, topic_id: str, on_assigned: Notice) -> KafkaFeed:
        """Open the topic as a member of its group.

        The member's name has the topic's id: a static member that returns gets its old
        partitions, and those of a recreated topic are not among them.
        """
        return KafkaFeed(
            self._brokers,
            [self._kafka.topic],
            group=self._kafka.group,
            instance=f"{self._instance}.{topic_id}",
            on_assigned=on_assigned,
            max_records=self._subscription.fetch_max,
            fetch_wait_ms=self._subscription.fetch_wait_ms,
        )

    @asynccontextmanager
    async def bodies(self) -> AsyncIterator[BodyReader]:
        """Open the decoder of messages, with the registry that the subscription names."""
        if self._kafka.schema_registry is None:
            yield BodyReader(self._registry)
            return
        async with aiohttp.ClientSession() as session:
            client = RegistryClient(self._kafka.schema_registry, session)
            yield BodyReader(ExternalRegistry(client))

    def records(self, replay: ReplayRange, first: int) -> AsyncIterator[Sequence[Record]]:
        """Read the records of a replay from an offset, up to its end, in parts."""
        partition = TopicPartition(replay.topic, replay.partition)
        return range_records(self._brokers, partition, first, replay.until_offset)
