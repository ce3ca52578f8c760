"""Topic ids from the broker."""

from __future__ import annotations

import asyncio
from typing import Any

from cachetools import TTLCache
from confluent_kafka import KafkaException, TopicCollection

from streams.clock import Clock
from streams.kafka.clients import admin
from streams.kafka.errors import FeedUnavailable

GROUP = "noetl.trigger"
"""The consumer group of the processes that read the trigger topic."""
CACHED_S = 10.0
_MOST_TOPICS = 256


class KafkaTopicIds:
    """Queries topic ids, with a cache.

    A recreated topic has another id, and its offsets restart; a reader that sees offsets go
    back should `forget`.
    """

    def __init__(self, bootstrap: str, clock: Clock, *, timeout_s: float = 10.0) -> None:
        self._bootstrap, self._timeout_s = bootstrap, timeout_s
        self._admin = admin(bootstrap)
        self._known: TTLCache[str, str] = TTLCache(_MOST_TOPICS, CACHED_S, timer=clock.monotonic)

    async def topic_id(self, topic: str) -> str:
        """Return the topic's id."""
        if (known := self._known.get(topic)) is not None:
            return known
        found = await asyncio.to_thread(self._ask, topic)
        self._known[topic] = found
        return found

    def forget(self) -> None:
        """Clear the cache."""
        self._known.clear()

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
