"""Reading the event topics for tools, tests and benches: committed records only, in batches.

Nothing is committed and no group is joined, so any number of these disturb nobody. The
runtime's own consumer is another one.
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
# The client mends these by itself; a reader only waits a little longer.
_PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
}


class MirrorStalled(BrokerUnavailable):
    """Records that a reader waits for did not arrive in time."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A record as Kafka has it, and where it stands."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp_ms: int

    async def event(self, codec: Codec) -> Event:
        """Return the event in it, as the log has it.

        Raises:
            UndecodableEvent: the record is not one of the mirror's.
        """
        return await event_of_record(self.value, self.headers, self.timestamp_ms, codec)


class EventTopicReader:
    """Reads every partition of some topics; use it as an async context manager."""

    def __init__(
        self,
        bootstrap: str,
        topics: Iterable[str],
        *,
        start: Literal["beginning", "end"] | int = "beginning",
        timeout_s: float = 15.0,
    ) -> None:
        """Begin at `start`; a number is a count of offsets before each end."""
        self._bootstrap, self._topics, self._start = bootstrap, tuple(topics), start
        self._timeout_s = timeout_s
        self._positions: dict[Partition, int] = {}
        # One thread: whoever leaves early closes the consumer after the call under way.
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
        """Return what can be read now or comes within `wait_s`: nothing at the end of topics."""
        return await self._call(lambda: self._read(wait_s))

    async def to_end(self, *, timeout_s: float = 60.0) -> AsyncIterator[list[EventRecord]]:
        """Yield batches up to where the topics end now.

        Raises:
            MirrorStalled: nothing came for `timeout_s`, and the end is not reached.
        """
        ends = await self.ends()
        deadline = time.monotonic() + timeout_s
        while any(self._positions.get(place, 0) < end for place, end in ends.items()):
            before = dict(self._positions)
            if records := await self.batch():
                yield records
            if self._positions != before:
                deadline = time.monotonic() + timeout_s
            elif time.monotonic() > deadline:
                left = sum(end - self._positions.get(place, 0) for place, end in ends.items())
                raise MirrorStalled(
                    f"{self._bootstrap}: {left} records before the end of the topics do not come; "
                    "an unfinished transaction may hold them up, see `streams mirror check`"
                )

    async def until(
        self, enough: Callable[[EventRecord], bool], *, timeout_s: float = 30.0
    ) -> AsyncIterator[EventRecord]:
        """Yield records up to and with the first that is `enough`.

        Raises:
            MirrorStalled: it did not come within `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for record in await self.batch():
                yield record
                if enough(record):
                    return
        raise MirrorStalled(
            f"{self._bootstrap}: the record waited for did not come within {timeout_s:.0f} s; "
            "see `streams mirror check`"
        )

    async def ends(self) -> dict[Partition, int]:
        """Return where each partition ends for readers of committed records."""
        return await self._call(lambda: {place: self._limits(place)[1] for place in self._places})

    async def lag(self) -> dict[Partition, int]:
        """Return how many places each partition has beyond what was read.

        The marker that ends a transaction takes a place, too. It counts as read once
        everything before it is: an idle partition read to its end has no lag.
        """
        ends = await self.ends()
        return {place: max(0, end - self._positions.get(place, 0)) for place, end in ends.items()}

    @property
    def positions(self) -> Mapping[Partition, int]:
        """Where each partition will be read next."""
        return dict(self._positions)

    def _open(self) -> None:
        self._consumer = range_consumer(self._bootstrap, group="noetl.tools", fetch_wait_ms=20)
        try:
            there = self._consumer.list_topics(timeout=self._timeout_s).topics
            self._places = [
                (topic, number)
                for topic in self._topics
                if topic in there
                for number in there[topic].partitions
            ]
            starts = {place: self._first(place) for place in self._places}
            self._consumer.assign([TopicPartition(*place, at) for place, at in starts.items()])
        except BaseException as error:
            self._consumer.close()
            if isinstance(error, KafkaException):
                raise self._unavailable(error) from error
            raise

    def _first(self, place: Partition) -> int:
        if self._start == "beginning":
            return int(BEGINNING)
        low, end = self._limits(place)
        back = self._start if isinstance(self._start, int) else 0
        self._positions[place] = max(low, end - back)
        return self._positions[place]

    def _limits(self, place: Partition) -> tuple[int, int]:
        try:
            found = self._consumer.get_watermark_offsets(
                TopicPartition(*place), timeout=self._timeout_s, cached=False
            )
        except KafkaException as error:
            raise self._unavailable(error) from error
        if found is None:
            raise BrokerUnavailable(f"{self._bootstrap}: no answer from Kafka; is it up?")
        return int(found[0]), int(found[1])

    def _read(self, wait_s: float) -> list[EventRecord]:
        # A batch call waits until it is full: wait for one record, and take what is there.
        first = self._consumer.poll(wait_s)
        if first is None:
            return []
        messages = [first, *self._consumer.consume(BATCH_COUNT, timeout=0)]
        return [record for record in map(self._record, messages) if record is not None]

    def _record(self, message: Any) -> EventRecord | None:
        place = (message.topic(), message.partition())
        if (error := message.error()) is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._positions[place] = message.offset()
            elif error.code() not in _PASSING:
                raise self._unavailable(KafkaException(error))
            return None
        self._positions[place] = message.offset() + 1
        return EventRecord(
            *place,
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
