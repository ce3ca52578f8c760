"""Ids of topics, from the broker: one that is deleted and created again has another."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from streams.kafka.clients import admin
from streams.kafka.errors import FeedUnavailable


class BrokerTopicIds:
    """Queries topic ids, with a new client each time.

    After a broker was paused for 10 minutes, a client from before did not find it for over a
    minute; a new one takes 10 ms.
    """

    def __init__(self, bootstrap: str, *, timeout_s: float = 10.0) -> None:
        self._bootstrap, self._timeout_s = bootstrap, timeout_s

    async def topic_id(self, topic: str) -> str:
        """Return the topic's id.

        Raises:
            FeedUnavailable: Kafka does not respond, or does not have the topic.
        """
        found = (await self.topic_ids([topic]))[topic]
        if found is None:
            raise FeedUnavailable(
                f"{self._bootstrap}: topic {topic} does not exist; "
                "create it with `streams topics apply`"
            )
        return found

    async def topic_ids(self, topics: Collection[str]) -> dict[str, str | None]:
        """Return the ids of topics; None for those that do not exist.

        Raises:
            FeedUnavailable: Kafka does not respond.
        """
        return await asyncio.to_thread(self._ask, topics)

    def _ask(self, topics: Collection[str]) -> dict[str, str | None]:
        client = admin(self._bootstrap)  # held: its end would cancel the request
        try:
            futures = client.describe_topics(
                TopicCollection(list(topics)), request_timeout=self._timeout_s
            )
            return {topic: self._id_of(futures[topic]) for topic in topics}
        except (KafkaException, TimeoutError) as error:
            raise FeedUnavailable(
                f"{self._bootstrap}: cannot read the ids of {', '.join(topics)}: {error}; "
                "check that Kafka is up (`streams status`)"
            ) from error

    def _id_of(self, future: Any) -> str | None:
        try:
            return str(future.result(timeout=self._timeout_s + 1).topic_id)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise
