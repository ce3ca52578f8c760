"""The work queue on Kafka: one topic a pool, keyed by frame or command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from streams.errors import Unavailable
from streams.kafka.clients import async_admin, idempotent_producer, started
from streams.kafka.names import work_topic
from streams.kafka.work.item import WorkItem

_MODEL = work_topic("default")
"""A pool that nobody declared gets a topic like this one."""


class WorkUnavailable(Unavailable):
    """Work could not be handed over; nobody knows whether it was."""


class KafkaWorkQueue:
    """Publishes in one go and returns when all is durable; an async context manager."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer: Any = None
        self._known: set[str] = set()

    async def __aenter__(self) -> KafkaWorkQueue:
        try:
            self._producer = await started(idempotent_producer(self._bootstrap))
        except KafkaError as error:
            raise self._unavailable("cannot be reached", error) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()

    async def publish(self, items: Sequence[WorkItem]) -> None:
        """Publish all items and return once they are durable.

        Raises:
            WorkUnavailable: not all were; publishing again is safe.
        """
        try:
            if missing := {work_topic(item.pool) for item in items} - self._known:
                await self._make(missing)
            sent = [
                await self._producer.send(
                    work_topic(item.pool), item.encode(), key=str(item.entity_id).encode()
                )
                for item in items
            ]
            await asyncio.gather(*sent)
        except KafkaError as error:
            raise self._unavailable(f"did not take all of {len(items)} items", error) from error

    async def _make(self, topics: set[str]) -> None:
        """Make the topics of pools that authors named and nobody declared.

        Without one, an execution would wait for ever, and the planner with it.
        """
        admin = async_admin(self._bootstrap)
        await admin.start()
        try:
            there = set(await admin.list_topics())
            if new := sorted(topics - there):
                (model,) = await admin.describe_topics([_MODEL])
                count = len(model["partitions"]) or 1
                replicas = min((len(one["replicas"]) for one in model["partitions"]), default=1)
                made = await admin.create_topics([NewTopic(name, count, replicas) for name in new])
                for _, code, *_ in made.topic_errors:
                    error = for_code(code)
                    if code and error is not TopicAlreadyExistsError:
                        raise error(f"topics {', '.join(new)}")
        finally:
            await admin.close()
        self._known |= topics

    def _unavailable(self, what: str, error: KafkaError) -> WorkUnavailable:
        return WorkUnavailable(
            f"{self._bootstrap}: {what}: {error!r}; see that Kafka is up (`streams status`) and "
            "has the pool's topic (`streams topics plan`), then publish again"
        )
