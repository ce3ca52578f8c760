"""Replies: outcomes of executions, published to the topic named by the trigger."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

import orjson
from aiokafka import TopicPartition
from aiokafka.errors import (
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from streams.errors import Refused, Unavailable
from streams.events.model import Json
from streams.kafka.bounded_producer import BoundedProducer, OutgoingRecord
from streams.kafka.clients import groupless_consumer
from streams.kafka.names import NAMESPACE
from streams.retry import CALL_LIMIT_S

EXECUTION_HEADER = "execution-id"
SEARCH_S = 30.0
_SEARCH_MARGIN_S = 10.0
"""Margin after which a search is aborted."""
CLOCKS_APART = timedelta(minutes=1)
"""Allowed clock skew: a record's timestamp is its writer's."""
_PERMANENT = (
    InvalidTopicError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)


class ReplyRefused(Refused):
    """The reply can never be sent: no such topic, not authorized, or too large."""


class ReplyUnavailable(Unavailable):
    """The broker does not accept the reply now; retrying is safe."""

    dependency = "Kafka"


class Replies(Protocol):
    """Publishes outcomes of executions, effectively once each."""

    async def send(
        self,
        reply_to: str,
        execution_id: int,
        body: dict[str, Json],
        *,
        maybe_sent: bool = False,
        since: datetime | None = None,
    ) -> None:
        """Publish `body` and return once it is durable.

        With `maybe_sent`, as after a restart, it first searches the topic for the reply, from
        `since`, the time the execution ended.

        Raises:
            ReplyRefused: it can never be sent.
            ReplyUnavailable: the broker does not accept it; retry with `maybe_sent`.
        """
        ...


class KafkaReplies:
    """Replies on users' Kafka topics; use it as an async context manager."""

    def __init__(self, bootstrap: str, *, limit_s: float = CALL_LIMIT_S) -> None:
        self._bootstrap = bootstrap
        self._known: set[str] = set()
        self._producer = BoundedProducer(bootstrap, limit_s=limit_s)

    async def __aenter__(self) -> KafkaReplies:
        try:
            await self._producer.open()
        except KafkaError as error:
            raise ReplyUnavailable(f"{self._bootstrap}: {error!r}; is Kafka up?") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.close()

    async def send(
        self,
        reply_to: str,
        execution_id: int,
        body: dict[str, Json],
        *,
        maybe_sent: bool = False,
        since: datetime | None = None,
    ) -> None:
        """Publish `body` and return once it is durable."""
        refuse_own(reply_to)
        record = OutgoingRecord(
            reply_to,
            str(execution_id).encode(),
            orjson.dumps(body),
            ((EXECUTION_HEADER, str(execution_id).encode()),),
        )
        try:
            await self._must_exist(reply_to)
            # One in flight may arrive after the search, so `send` waits for it instead.
            searches = maybe_sent and not self._producer.is_under_way(record)
            if searches and await self._is_sent(reply_to, execution_id, since):
                return
            await self._producer.send([record])
        except _PERMANENT as error:
            raise ReplyRefused(
                f"execution {execution_id}: its reply cannot be sent to {reply_to}: {error!r}; "
                "create the topic, or grant write access"
            ) from error
        except KafkaError as error:
            raise ReplyUnavailable(
                f"execution {execution_id}: {reply_to} does not accept its reply: {error!r}"
            ) from error

    async def _must_exist(self, topic: str) -> None:
        """Raise if the topic does not exist; the producer would wait for its metadata."""
        if topic not in self._known:
            await self._partitions(topic)
            self._known.add(topic)

    async def _partitions(self, topic: str) -> list[TopicPartition]:
        there = await self._producer.metadata()
        numbers = there.partitions_for_topic(topic)
        if not numbers:
            raise UnknownTopicOrPartitionError(topic)
        return [TopicPartition(topic, number) for number in sorted(numbers)]

    async def _is_sent(self, topic: str, execution_id: int, since: datetime | None) -> bool:
        partitions = await self._partitions(topic)
        consumer = groupless_consumer(self._bootstrap)
        try:
            async with asyncio.timeout(SEARCH_S + _SEARCH_MARGIN_S):
                await consumer.start()
                return await _found(consumer, partitions, str(execution_id).encode(), since)
        except TimeoutError:
            raise KafkaTimeoutError(f"{topic} could not be searched in time") from None
        finally:
            await consumer.stop()


async def _found(
    consumer: Any, partitions: list[TopicPartition], wanted: bytes, since: datetime | None
) -> bool:
    """Search from `since` to the current end of the topic for the execution's reply."""
    consumer.assign(partitions)
    ends = await consumer.end_offsets(partitions)
    await consumer.seek_to_beginning(*partitions)
    if since is not None:
        at = int((since - CLOCKS_APART).timestamp() * 1000)
        for partition, found in (
            await consumer.offsets_for_times(dict.fromkeys(partitions, at))
        ).items():
            consumer.seek(partition, ends[partition] if found is None else found.offset)
    deadline = time.monotonic() + SEARCH_S
    while time.monotonic() < deadline:
        if all([await consumer.position(partition) >= ends[partition] for partition in partitions]):
            return False
        for records in (await consumer.getmany(timeout_ms=200)).values():
            if any((EXECUTION_HEADER, wanted) in one.headers for one in records):
                return True
    raise ReplyUnavailable(f"the replies sent so far were not read within {SEARCH_S:.0f} s")


def refuse_own(reply_to: str) -> None:
    """Refuse the system's own topics as reply topics."""
    if reply_to.startswith(NAMESPACE):
        raise ReplyRefused(f"{reply_to} is a topic of the system; use a topic of your own")


@dataclass(slots=True)
class MemoryReplies:
    """Stores replies by topic, for tests and the simulator."""

    sent: dict[str, list[tuple[int, dict[str, Json]]]] = field(default_factory=dict)

    async def send(
        self,
        reply_to: str,
        execution_id: int,
        body: dict[str, Json],
        *,
        maybe_sent: bool = False,
        since: datetime | None = None,
    ) -> None:
        """Store `body`, unless it was sent before."""
        refuse_own(reply_to)
        there = self.sent.setdefault(reply_to, [])
        if not (maybe_sent and any(one == execution_id for one, _ in there)):
            there.append((execution_id, body))
