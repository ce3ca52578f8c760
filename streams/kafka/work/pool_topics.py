"""Topics of pools that no topology declares: created like that of the pool `default`."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaTimeoutError, TopicAlreadyExistsError, for_code

from streams.kafka.clients import async_admin
from streams.kafka.names import work_topic
from streams.retry import CALL_LIMIT_S

_TEMPLATE_TOPIC = work_topic("default")


async def create_pool_topics(
    bootstrap: str, topics: Collection[str], *, limit_s: float = CALL_LIMIT_S
) -> None:
    """Create those of `topics` that do not exist.

    Raises:
        KafkaError: Kafka cannot be reached, or refuses one.
    """
    try:
        async with asyncio.timeout(limit_s):
            await _create(bootstrap, frozenset(topics))
    except TimeoutError:
        raise KafkaTimeoutError(f"no answer within {limit_s:g} s") from None


async def _create(bootstrap: str, topics: frozenset[str]) -> None:
    admin = async_admin(bootstrap)
    try:
        await admin.start()
        if new := sorted(topics - set(await admin.list_topics())):
            (model,) = await admin.describe_topics([_TEMPLATE_TOPIC])
            count = len(model["partitions"]) or 1
            replicas = min((len(one["replicas"]) for one in model["partitions"]), default=1)
            made = await admin.create_topics([NewTopic(name, count, replicas) for name in new])
            for _, code, *_ in made.topic_errors:
                error = for_code(code)
                if code and error is not TopicAlreadyExistsError:
                    raise error(f"topics {', '.join(new)}")
    finally:
        await admin.close()
