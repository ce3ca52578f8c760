"""A consumer that records arrival times."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from streams.kafka.clients import admin, tail_consumer

PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Received:
    """One record: the id in its header, and its arrival by both clocks."""

    event_id: str
    at: float
    monotonic: float


class Receiver:
    """Reads committed records of some topics from their current end."""

    def __init__(self, bootstrap: str, topics: list[str], *, create: bool = False) -> None:
        self._bootstrap, self._topics, self._create = bootstrap, topics, create

    def __enter__(self) -> Receiver:
        if self._create:
            _create(self._bootstrap, self._topics)
        group = f"noetl.bench.{uuid4().hex}"
        self._consumer = tail_consumer(self._bootstrap, group=group, fetch_wait_ms=10)
        assigned = [partition for topic in self._topics for partition in self._partitions(topic)]
        self._consumer.assign(assigned)
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()
        if self._create:
            client = admin(self._bootstrap)  # its futures fail once it is collected
            for future in client.delete_topics(self._topics).values():
                future.result()

    def _partitions(self, topic: str) -> list[TopicPartition]:
        if self._create:  # a new topic is empty
            return [TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
        partitions = self._consumer.list_topics(topic, timeout=15).topics[topic].partitions
        found = [TopicPartition(topic, number) for number in partitions]
        for partition in found:
            partition.offset = self._consumer.get_watermark_offsets(partition, timeout=15)[1]
        return found

    async def collect(self, expected: int, *, give_up_after_s: float) -> list[Received]:
        """Return records until there are `expected`, then those of another second.

        Stops after `give_up_after_s` without one; the bench then reports missing records.
        """
        return await asyncio.to_thread(self._collect, expected, give_up_after_s)

    def _collect(self, expected: int, give_up_after_s: float) -> list[Received]:
        got: list[Received] = []
        quiet_since = time.monotonic()
        while True:
            # `consume` alone waits for its whole timeout even when a message is available.
            first = self._consumer.poll(0.2)
            messages = [] if first is None else [first, *self._consumer.consume(2000, timeout=0)]
            now, monotonic = time.time(), time.monotonic()
            for message in messages:
                if message.error() is None:
                    got.append(Received(_id(message.headers()), now, monotonic))
            if messages:
                quiet_since = monotonic
            limit = 1.0 if len(got) >= expected else give_up_after_s
            if monotonic - quiet_since > limit:
                return got


def _id(headers: Any) -> str:
    return next((value.decode() for name, value in headers or () if name == "id"), "")


def _create(bootstrap: str, topics: list[str]) -> None:
    wanted = [NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1) for topic in topics]
    client = admin(bootstrap)  # its futures fail once it is collected
    for future in client.create_topics(wanted).values():
        future.result()
