"""The work queue on Kafka: one topic a pool, keyed by frame or command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError, KafkaTimeoutError, TopicAlreadyExistsError, for_code

from streams.errors import Unavailable
from streams.kafka.bounded_producer import BoundedProducer, OutgoingRecord
from streams.kafka.clients import async_admin
from streams.kafka.names import work_topic
from streams.kafka.work.item import WorkItem
from streams.retry import CALL_LIMIT_S

_MODEL = work_topic("default")
"""A pool that nobody declared gets a topic like this one."""


class WorkUnavailable(Unavailable):
    """Work could not be handed over; nobody knows whether it was."""


class KafkaWorkQueue:
    """Publishes in one go and returns when all is durable; an async context manager."""

    def __init__(self, bootstrap: str, *, limit_s: float = CALL_LIMIT_S) -> None:
        self._bootstrap, self._limit_s = bootstrap, limit_s
        self._producer = BoundedProducer(bootstrap, limit_s=limit_s)
        self._known: set[str] = set()

    async def __aenter__(self) -> KafkaWorkQueue:
        try:
            await self._producer.open()
        except KafkaError as error:
            raise self._unavailable("cannot be reached", error) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.close()

    async def publish(self, items: Sequence[WorkItem]) -> None:
        """Publish all items and return once they are durable.

        Raises:
            WorkUnavailable: not all were; publishing again is safe.
        """
        try:
            if missing := {work_topic(item.pool) for item in items} - self._known:
                await self._make(missing)
            await self._producer.send([_record(item) for item in items])
        except KafkaError as error:
            raise self._unavailable(f"did not take all of {len(items)} items", error) from error

    async def _make(self, topics: set[str]) -> None:
        """Make the topics of pools that authors named and nobody declared.

        Without one, an execution would wait for ever, and the planner with it.
        """
        try:
            async with asyncio.timeout(self._limit_s):
                await self._create(topics)
        except TimeoutError:
            raise KafkaTimeoutError(f"no answer within {self._limit_s:g} s") from None
        self._known |= topics

    async def _create(self, topics: set[str]) -> None:
        admin = async_admin(self._bootstrap)
        try:
            await admin.start()
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

    def _unavailable(self, what: str, error: KafkaError) -> WorkUnavailable:
        return WorkUnavailable(
            f"{self._bootstrap}: {what}: {error!r}; see that Kafka is up (`streams status`) and "
            "has the pool's topic (`streams topics plan`), then publish again"
        )


def _record(item: WorkItem) -> OutgoingRecord:
    return OutgoingRecord(work_topic(item.pool), str(item.entity_id).encode(), item.encode())
