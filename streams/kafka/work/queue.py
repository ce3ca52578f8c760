"""The work queue on Kafka: one topic per pool, keyed by frame or command."""

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

_TEMPLATE_TOPIC = work_topic("default")
"""An undeclared pool gets a topic like this one."""


class WorkUnavailable(Unavailable):
    """Work may not have been published; retrying is safe."""

    dependency = "Kafka"


class KafkaWorkQueue:
    """Publishes batches and returns when they are durable; an async context manager."""

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
                await self._create_missing(missing)
            await self._producer.send([_record(item) for item in items])
        except KafkaError as error:
            raise self._unavailable(f"did not accept all of {len(items)} items", error) from error

    async def _create_missing(self, topics: set[str]) -> None:
        """Create the topics of undeclared pools, without which executions would wait forever."""
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
            existing = set(await admin.list_topics())
            if new := sorted(topics - existing):
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

    def _unavailable(self, what: str, error: KafkaError) -> WorkUnavailable:
        return WorkUnavailable(
            f"{self._bootstrap}: {what}: {error!r}; check that Kafka is up (`streams status`) and "
            "has the pool's topic (`streams topics plan`), then publish again"
        )


def _record(item: WorkItem) -> OutgoingRecord:
    return OutgoingRecord(work_topic(item.pool), str(item.entity_id).encode(), item.encode())
