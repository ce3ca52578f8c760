"""Ids of topics, from the broker: one that is deleted and created again has another."""

from __future__ import annotations

import asyncio
from typing import Any

from confluent_kafka import KafkaException, TopicCollection

from streams.kafka.clients import admin
from streams.kafka.errors import FeedUnavailable


class BrokerTopicIds:
    """Queries topic ids."""

    def __init__(self, bootstrap: str, *, timeout_s: float = 10.0) -> None:
        self._bootstrap, self._timeout_s = bootstrap, timeout_s
        self._admin = admin(bootstrap)

    async def topic_id(self, topic: str) -> str:
        """Return the topic's id.

        Raises:
            FeedUnavailable: Kafka does not respond, or does not have the topic.
        """
        return await asyncio.to_thread(self._ask, topic)

    def _ask(self, topic: str) -> str:
        try:
            futures = self._admin.describe_topics(
                TopicCollection([topic]), request_timeout=self._timeout_s
            )
            described: Any = futures[topic].result(timeout=self._timeout_s + 1)
        except (KafkaException, TimeoutError) as error:
            raise FeedUnavailable(
                f"{self._bootstrap}: cannot read the id of topic {topic}: {error}; "
                "check that Kafka is up and has it (`streams topics apply`)"
            ) from error
        return str(described.topic_id)
