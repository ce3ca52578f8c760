"""The work queue on Kafka: one topic per pool, keyed by frame or command."""

from __future__ import annotations

from collections.abc import Sequence

from aiokafka.errors import KafkaError

from streams.errors import Unavailable
from streams.kafka.bounded_producer import BoundedProducer, OutgoingRecord
from streams.kafka.names import work_topic
from streams.kafka.work.item import WorkItem
from streams.kafka.work.pool_topics import create_pool_topics
from streams.retry import CALL_LIMIT_S


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
                # Without them, executions that use undeclared pools would wait forever.
                await create_pool_topics(self._bootstrap, missing, limit_s=self._limit_s)
                self._known |= missing
            await self._producer.send([_record(item) for item in items])
        except KafkaError as error:
            raise self._unavailable(f"did not accept all of {len(items)} items", error) from error

    def _unavailable(self, what: str, error: KafkaError) -> WorkUnavailable:
        return _unavailable(self._bootstrap, what, error)


async def create_topic(bootstrap: str, pool: str, *, limit_s: float = CALL_LIMIT_S) -> None:
    """Create the topic of a pool, for its workers to read, if it does not exist.

    Raises:
        WorkUnavailable: Kafka is down, or refuses it.
    """
    if pool == "default":
        return  # declared in `topics/`
    try:
        await create_pool_topics(bootstrap, {work_topic(pool)}, limit_s=limit_s)
    except KafkaError as error:
        raise _unavailable(bootstrap, f"has no topic {work_topic(pool)}", error) from error


def _unavailable(bootstrap: str, what: str, error: KafkaError) -> WorkUnavailable:
    return WorkUnavailable(
        f"{bootstrap}: {what}: {error!r}; check that Kafka is up (`streams status`) and "
        "has the pool's topic (`streams topics plan`), then try again"
    )


def _record(item: WorkItem) -> OutgoingRecord:
    return OutgoingRecord(work_topic(item.pool), str(item.entity_id).encode(), item.encode())
