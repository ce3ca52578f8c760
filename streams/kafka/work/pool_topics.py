"""Topics of pools that no topology declares: created like that of the pool `default`."""

from __future__ import annotations

from collections.abc import Collection

from streams.kafka.names import work_topic
from streams.kafka.topic_creation import create_like
from streams.retry import CALL_LIMIT_S


async def create_pool_topics(
    bootstrap: str, topics: Collection[str], *, limit_s: float = CALL_LIMIT_S
) -> None:
    """Create those of `topics` that do not exist.

    Raises:
        KafkaError: Kafka cannot be reached, or refuses one.
    """
    await create_like(bootstrap, topics, work_topic("default"), limit_s=limit_s)
