"""Topic ids from the broker, with a cache."""

from __future__ import annotations

from cachetools import TTLCache

from streams.clock import Clock
from streams.kafka.topic_ids import BrokerTopicIds

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
        self._ids = BrokerTopicIds(bootstrap, timeout_s=timeout_s)
        self._known: TTLCache[str, str] = TTLCache(_MOST_TOPICS, CACHED_S, timer=clock.monotonic)

    async def topic_id(self, topic: str) -> str:
        """Return the topic's id."""
        if (known := self._known.get(topic)) is not None:
            return known
        found = self._known[topic] = await self._ids.topic_id(topic)
        return found

    def forget(self) -> None:
        """Clear the cache."""
        self._known.clear()
