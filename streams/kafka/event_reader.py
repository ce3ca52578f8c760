"""A read_committed reader of the event topics for tools, tests and benchmarks.

It commits nothing and joins no group. The roles use `feed/agent.py` instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from confluent_kafka import OFFSET_BEGINNING as BEGINNING
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streams.events.codec import Codec
from streams.events.model import Event
from streams.kafka.clients import range_consumer, reason
from streams.kafka.errors import BrokerUnavailable
from streams.kafka.records import event_of_record

T = TypeVar("T")
Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""

BATCH_COUNT = 1000
# The client recovers from these by itself.
_TRANSIENT = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
}


class MirrorStalled(BrokerUnavailable):
    """Records that a reader waits for did not arrive in time."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A Kafka record with its position."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp_ms: int

    async def event(self, codec: Codec) -> Event:
        """Decode its event.

        Raises:
            UndecodableEvent: the record is not one of the mirror's.
        """
        return await event_of_record(self.value, self.headers, self.timestamp_ms, codec)


class EventTopicReader:
    """Reads all partitions of some topics; use it as an async context manager."""

    def __init__(
        self,
        bootstrap: str,
        topics: Iterable[str],
        *,
        start: Literal["beginning", "end"] | int = "beginning",
        timeout_s: float = 15.0,
    ) -> None:
        """Begin at `start`; a number counts offsets back from each end."""
        self._bootstrap, self._topics, self._start = bootstrap, tuple(topics), start
        self._timeout_s = timeout_s
        self._positions: dict[Partition, int] = {}
        # One thread, so that closing waits for a running call.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reader")

    async def __aenter__(self) -> EventTopicReader:
        try:
            await self._call(self._open)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._call(self._consumer.close)
        self._thread.shutdown(wait=False)

    async def batch(self, *, wait_s: float = 0.2) -> list[EventRecord]:
        """Return records that are available within `wait_s`; empty at the end of the topics."""
        return await self._call(lambda: self._read(wait_s))

    async def to_end(self, *, timeout_s: float = 60.0) -> AsyncIterator[list[EventRecord]]:
        """Yield batches up to the current end of the topics.

        Raises:
            MirrorStalled: no progress for `timeout_s` before the end.
        """
        ends = await self.ends()
        deadline = time.monotonic() + timeout_s
        while any(
            self._positions.get(partition_key, 0) < end for partition_key, end in ends.items()
        ):
            before = dict(self._positions)
            if records := await self.batch():
                yield records
            if self._positions != before:
                deadline = time.monotonic() + timeout_s
            elif time.monotonic() > deadline:
                remaining = sum(
                    end - self._positions.get(partition_key, 0)
                    for partition_key, end in ends.items()
                )
                raise MirrorStalled(
                    f"{self._bootstrap}: {remaining} records before the end of the topics did not "
                    "arrive; an open transaction may block them, see `streams mirror check`"
                )

    async def until(
        self, enough: Callable[[EventRecord], bool], *, timeout_s: float = 30.0
    ) -> AsyncIterator[EventRecord]:
        """Yield records up to and including the first for which `enough` is true.

        Raises:
            MirrorStalled: it did not arrive within `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for record in await self.batch():
                yield record
                if enough(record):
                    return
        raise MirrorStalled(
            f"{self._bootstrap}: the expected record did not arrive within {timeout_s:.0f} s; "
            "see `streams mirror check`"
        )

    async def ends(self) -> dict[Partition, int]:
        """Return the last stable offset of each partition."""
        return await self._call(
            lambda: {
                partition_key: self._limits(partition_key)[1] for partition_key in self._partitions
            }
        )

    async def lag(self) -> dict[Partition, int]:
        """Return the unread offsets of each partition.

        Transaction markers count as read once everything before them is: an idle partition
        read to its end has no lag.
        """
        ends = await self.ends()
        return {
            partition_key: max(0, end - self._positions.get(partition_key, 0))
            for partition_key, end in ends.items()
        }

    @property
    def positions(self) -> Mapping[Partition, int]:
        """The next offset of each partition."""
        return dict(self._positions)

    def _open(self) -> None:
        self._consumer = range_consumer(self._bootstrap, group="noetl.tools", fetch_wait_ms=20)
        try:
            known = self._consumer.list_topics(timeout=self._timeout_s).topics
            self._partitions = [
                (topic, number)
                for topic in self._topics
                if topic in known
                for number in known[topic].partitions
            ]
            starts = {
                partition_key: self._first(partition_key) for partition_key in self._partitions
            }
            self._consumer.assign(
                [TopicPartition(*partition_key, at) for partition_key, at in starts.items()]
            )
        except BaseException as error:
            self._consumer.close()
            if isinstance(error, KafkaException):
                raise self._unavailable(error) from error
            raise

    def _first(self, partition_key: Partition) -> int:
        if self._start == "beginning":
            return int(BEGINNING)
        low, end = self._limits(partition_key)
        back = self._start if isinstance(self._start, int) else 0
        self._positions[partition_key] = max(low, end - back)
        return self._positions[partition_key]

    def _limits(self, partition_key: Partition) -> tuple[int, int]:
        try:
            found = self._consumer.get_watermark_offsets(
                TopicPartition(*partition_key), timeout=self._timeout_s, cached=False
            )
        except KafkaException as error:
            raise self._unavailable(error) from error
        if found is None:
            raise BrokerUnavailable(f"{self._bootstrap}: no response from Kafka; is it up?")
        return int(found[0]), int(found[1])

    def _read(self, wait_s: float) -> list[EventRecord]:
        # `consume` waits until its batch is full: poll for one record, then take the rest.
        first = self._consumer.poll(wait_s)
        if first is None:
            return []
        messages = [first, *self._consumer.consume(BATCH_COUNT, timeout=0)]
        return [record for record in map(self._record, messages) if record is not None]

    def _record(self, message: Any) -> EventRecord | None:
        partition_key = (message.topic(), message.partition())
        if (error := message.error()) is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._positions[partition_key] = message.offset()
            elif error.code() not in _TRANSIENT:
                raise self._unavailable(KafkaException(error))
            return None
        self._positions[partition_key] = message.offset() + 1
        return EventRecord(
            *partition_key,
            message.offset(),
            message.key(),
            message.value(),
            message.headers() or (),
            message.timestamp()[1],
        )

    def _unavailable(self, error: KafkaException) -> BrokerUnavailable:
        return BrokerUnavailable(
            f"{self._bootstrap}: cannot read {', '.join(self._topics)}: {reason(error)}"
        )

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
