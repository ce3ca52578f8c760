"""A producer whose calls end in time, also while the broker is paused and answers nothing."""

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
"""How long its end waits for what is under way."""


class OutgoingRecord(NamedTuple):
    """A record to send."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class BoundedProducer:
    """An idempotent producer; each call raises KafkaTimeoutError after `limit_s`.

    The driver goes on sending what a call gave up on. A record that is sent again meanwhile
    is not put beside it: the call waits for the one that is under way.
    """

    def __init__(self, bootstrap: str, *, limit_s: float = CALL_LIMIT_S) -> None:
        self._bootstrap, self._limit_s = bootstrap, limit_s
        self._producer: AIOKafkaProducer | None = None
        self._opening = asyncio.Lock()
        self._under_way: dict[OutgoingRecord, asyncio.Future[object]] = {}

    async def open(self) -> None:
        """Connect, if that was not done.

        Raises:
            KafkaError: the broker cannot be reached, or does not answer in time.
        """
        try:
            async with asyncio.timeout(self._limit_s):
                await self._opened()
        except TimeoutError:
            raise self._unanswered() from None

    async def close(self) -> None:
        """Wait a moment for what is under way, then close."""
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
            KafkaError: not all were, as far as is known; sending again is safe.
        """
        try:
            async with asyncio.timeout(self._limit_s):
                producer = await self._opened()
                under_way = [await self._send(producer, record) for record in records]
                if under_way:
                    await asyncio.wait(under_way)  # a timeout must not cancel them
        except TimeoutError:
            raise self._unanswered() from None
        for one in under_way:
            one.result()

    def is_under_way(self, record: OutgoingRecord) -> bool:
        """Return whether an earlier call gave up on this record and the driver did not."""
        return record in self._under_way

    async def metadata(self) -> ClusterMetadata:
        """Return what the broker knows about its topics.

        Raises:
            KafkaError: it cannot be reached, or does not answer in time.
        """
        try:
            async with asyncio.timeout(self._limit_s):
                return await (await self._opened()).client.fetch_all_metadata()
        except TimeoutError:
            raise self._unanswered() from None

    async def _opened(self) -> AIOKafkaProducer:
        async with self._opening:
            if self._producer is None:
                self._producer = await started(idempotent_producer(self._bootstrap))
            return self._producer

    async def _send(
        self, producer: AIOKafkaProducer, record: OutgoingRecord
    ) -> asyncio.Future[object]:
        if (earlier := self._under_way.get(record)) is not None:
            return earlier
        sent: asyncio.Future[object] = await producer.send(
            record.topic, record.value, key=record.key, headers=list(record.headers)
        )
        self._under_way[record] = sent
        sent.add_done_callback(lambda done: self._end(record, done))
        return sent

    def _end(self, record: OutgoingRecord, sent: asyncio.Future[object]) -> None:
        if self._under_way.get(record) is sent:
            del self._under_way[record]
        with suppress(asyncio.CancelledError):
            sent.exception()  # read here: nobody may wait for it any more

    def _unanswered(self) -> KafkaTimeoutError:
        return KafkaTimeoutError(f"no answer within {self._limit_s:g} s")
