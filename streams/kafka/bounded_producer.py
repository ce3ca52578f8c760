"""A Kafka producer with bounded calls, also while the broker is paused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from aiokafka.errors import KafkaTimeoutError

from streams.kafka.clients import idempotent_producer, started
from streams.retry import CALL_LIMIT_S

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer
    from aiokafka.cluster import ClusterMetadata

_STOP_S = 3.0
"""How long `close` waits for records in flight."""


class OutgoingRecord(NamedTuple):
    """A record to send."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class BoundedProducer:
    """An idempotent producer; each call raises KafkaTimeoutError after `limit_s`.

    The driver continues to send after a call timed out. Sending the same record again then
    waits for the one in flight instead of duplicating it.
    """

    def __init__(self, bootstrap: str, *, limit_s: float = CALL_LIMIT_S) -> None:
        self._bootstrap, self._limit_s = bootstrap, limit_s
        self._producer: AIOKafkaProducer | None = None
        self._opening = asyncio.Lock()
        self._in_flight: dict[OutgoingRecord, asyncio.Future[object]] = {}

    async def open(self) -> None:
        """Connect, if not connected.

        Raises:
            KafkaError: the broker cannot be reached, or does not respond in time.
        """
        try:
            async with asyncio.timeout(self._limit_s):
                await self._opened()
        except TimeoutError:
            raise self._timeout() from None

    async def close(self) -> None:
        """Wait briefly for records in flight, then close."""
        if self._producer is None:
            return
        try:
            async with asyncio.timeout(_STOP_S):
                await self._producer.stop()
        except TimeoutError:
            await self._producer.client.close()

    async def send(self, records: Sequence[OutgoingRecord]) -> None:
        """Send all records and return once they are durable.

        Raises:
            KafkaError: some may not be durable; sending again is safe.
        """
        try:
            async with asyncio.timeout(self._limit_s):
                producer = await self._opened()
                in_flight = [await self._send(producer, record) for record in records]
                if in_flight:
                    await asyncio.wait(in_flight)  # a timeout must not cancel them
        except TimeoutError:
            raise self._timeout() from None
        for one in in_flight:
            one.result()

    def is_under_way(self, record: OutgoingRecord) -> bool:
        """Return whether the driver is still sending this record after a call timed out."""
        return record in self._in_flight

    async def metadata(self) -> ClusterMetadata:
        """Return the broker's metadata of its topics.

        Raises:
            KafkaError: it cannot be reached, or does not respond in time.
        """
        try:
            async with asyncio.timeout(self._limit_s):
                return await (await self._opened()).client.fetch_all_metadata()
        except TimeoutError:
            raise self._timeout() from None

    async def _opened(self) -> AIOKafkaProducer:
        async with self._opening:
            if self._producer is None:
                self._producer = await started(idempotent_producer(self._bootstrap))
            return self._producer

    async def _send(
        self, producer: AIOKafkaProducer, record: OutgoingRecord
    ) -> asyncio.Future[object]:
        if (earlier := self._in_flight.get(record)) is not None:
            return earlier
        sent: asyncio.Future[object] = await producer.send(
            record.topic, record.value, key=record.key, headers=list(record.headers)
        )
        self._in_flight[record] = sent
        sent.add_done_callback(lambda done: self._end(record, done))
        return sent

    def _end(self, record: OutgoingRecord, sent: asyncio.Future[object]) -> None:
        if self._in_flight.get(record) is sent:
            del self._in_flight[record]
        with suppress(asyncio.CancelledError):
            sent.exception()  # mark as retrieved: the caller may have timed out

    def _timeout(self) -> KafkaTimeoutError:
        return KafkaTimeoutError(f"no answer within {self._limit_s:g} s")
