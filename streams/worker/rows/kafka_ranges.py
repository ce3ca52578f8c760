"""Ranges of Kafka topics, read without a consumer group."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError

from streams.clock import Clock
from streams.errors import Refused, Unavailable
from streams.events.model import Json
from streams.kafka.clients import async_admin, groupless_consumer
from streams.worker.rows.offsets import row_of

_POLL_MS = 200
_FETCH_WAIT_MS = 50


class TopicUnavailable(Unavailable):
    """A topic that a loop reads cannot be reached."""

    dependency = "Kafka"


class NoSuchTopic(Refused):
    """A loop reads a topic that does not exist."""


class KafkaPartitions:
    """Reads committed records by offset, without committing offsets."""

    def __init__(self, bootstrap: str, clock: Clock, *, timeout_s: float = 15.0) -> None:
        self._bootstrap, self._clock, self._timeout_s = bootstrap, clock, timeout_s

    async def ranges(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """Return each partition's first offset and the one after its last."""
        partitions = [TopicPartition(topic, number) for number in await self._numbers(topic)]
        async with self._reader(topic) as consumer:
            first = await consumer.beginning_offsets(partitions)
            end = await consumer.end_offsets(partitions)
            return {one.partition: (first[one], end[one]) for one in partitions}

    async def read(
        self, topic: str, partition: int, start: int, end: int
    ) -> Sequence[Mapping[str, Json]]:
        """Return the committed records from `start` up to, excluding, `end`."""
        topic_partition = TopicPartition(topic, partition)
        rows: list[Mapping[str, Json]] = []
        async with self._reader(topic) as consumer:
            consumer.assign([topic_partition])
            consumer.seek(topic_partition, start)
            last = self._clock.monotonic()
            while (at := await consumer.position(topic_partition)) < end:
                found = await consumer.getmany(topic_partition, timeout_ms=_POLL_MS)
                rows += [
                    row_of(partition, r.offset, r.key, r.value, dict(r.headers), r.timestamp)
                    for r in found.get(topic_partition, ())
                    if r.offset < end
                ]
                if await consumer.position(topic_partition) > at:
                    last = self._clock.monotonic()
                elif self._clock.monotonic() - last > self._timeout_s:
                    raise TopicUnavailable(f"{topic}/{partition}: no records after offset {at}")
        return rows

    async def _numbers(self, topic: str) -> list[int]:
        """Return the partition numbers; a consumer would wait for a missing topic."""
        admin = async_admin(self._bootstrap)
        try:
            await admin.start()
            (found,) = await admin.describe_topics([topic])
        except KafkaError as error:
            raise TopicUnavailable(f"topic {topic!r}: {error!r}") from error
        finally:
            await admin.close()
        if found["error_code"] == UnknownTopicOrPartitionError.errno:
            raise NoSuchTopic(f"topic {topic!r} does not exist; create it, or correct the name")
        return sorted(one["partition"] for one in found["partitions"])

    @asynccontextmanager
    async def _reader(self, topic: str) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = groupless_consumer(
            self._bootstrap, offset_reset="none", fetch_wait_ms=_FETCH_WAIT_MS
        )
        try:
            await consumer.start()
            yield consumer
        except KafkaError as error:
            raise TopicUnavailable(f"topic {topic!r}: {error!r}") from error
        finally:
            await consumer.stop()
