"""Creation of topics that belong to another one: changelogs, and topics of pools."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaTimeoutError, TopicAlreadyExistsError, for_code

from streams.kafka.clients import async_admin
from streams.retry import CALL_LIMIT_S

COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.2"}


def changelog_topic(group: str, table: str) -> str:
    """Return the name of a table's changelog, as Faust names it."""
    return f"{group}-{table}-changelog"


async def create_like(
    bootstrap: str,
    topics: Collection[str],
    model: str,
    *,
    config: dict[str, str] | None = None,
    limit_s: float = CALL_LIMIT_S,
) -> list[str]:
    """Create those of `topics` that do not exist, with the partitions of `model`; return them.

    Raises:
        KafkaError: Kafka cannot be reached, or refuses one.
    """
    try:
        async with asyncio.timeout(limit_s):
            return await _create_like(bootstrap, frozenset(topics), model, config or {})
    except TimeoutError:
        raise KafkaTimeoutError(f"no answer within {limit_s:g} s") from None


async def _create_like(
    bootstrap: str, topics: frozenset[str], model: str, config: dict[str, str]
) -> list[str]:
    admin = async_admin(bootstrap)
    try:
        await admin.start()
        new = sorted(topics - set(await admin.list_topics()))
        if new:
            (found,) = await admin.describe_topics([model])
            count = len(found["partitions"]) or 1
            replicas = min((len(one["replicas"]) for one in found["partitions"]), default=1)
            made = await admin.create_topics(
                [NewTopic(name, count, replicas, topic_configs=config) for name in new]
            )
            for _, code, *_ in made.topic_errors:
                error = for_code(code)
                if code and error is not TopicAlreadyExistsError:
                    raise error(f"topics {', '.join(new)}")
        return new
    finally:
        await admin.close()
