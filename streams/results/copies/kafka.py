"""The tier `kv`: a compacted topic, read into a table in every process that uses it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from aiokafka.errors import KafkaError

from streams.clock import Clock
from streams.events.model import PayloadRef
from streams.kafka.bounded_producer import BoundedProducer, OutgoingRecord
from streams.kafka.clients import groupless_consumer
from streams.payload.content import key_of
from streams.results.copies.ends import Ends, end_of, milliseconds
from streams.results.copies.memory import ROOM_BYTES, Recent
from streams.results.copies.port import Copy, CopyFailed
from streams.retry import CALL_LIMIT_S

TOPIC = "noetl.results"
_log = logging.getLogger(__name__)
PIECE_BYTES = 64 * 1024
"""Most bytes of a record; a larger value is split into several."""
_UNTIL = "until-ms"
_POLL_MS = 500
_AGAIN_S = 5.0


class KafkaTier:
    """Values by digest, in pieces. A write is durable on return; others see it soon after.

    The table is filled from the topic's beginning and bounded: evicted values are read from the
    payload store. Any reader that finds an expired value writes its tombstone.
    """

    def __init__(
        self,
        bootstrap: str,
        clock: Clock,
        *,
        topic: str = TOPIC,
        room_bytes: int = ROOM_BYTES,
        limit_s: float = CALL_LIMIT_S,
    ) -> None:
        self._bootstrap, self._clock, self._topic = bootstrap, clock, topic
        self._ends = Ends()
        self._deleted: set[str] = set()
        """Deleted here, but the reader has not reached the tombstone yet."""
        self._table = Recent(room_bytes)
        self._producer = BoundedProducer(bootstrap, limit_s=limit_s)
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> KafkaTier:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._producer.close()

    async def put(self, copy: Copy) -> None:
        """Write a value."""
        self._begin()
        names = _names(copy.payload)
        self._deleted.difference_update(names)
        until = end_of(copy.expires_at, self._clock.now())
        pieces = {
            name: copy.data[at * PIECE_BYTES : (at + 1) * PIECE_BYTES]
            for at, name in enumerate(names)
        }
        await self._send(pieces, [(_UNTIL, str(milliseconds(until)).encode())])
        for name, piece in pieces.items():
            self._table.put(name, piece)
            # Not left to the reader: it may still be at an earlier record that ends sooner.
            self._ends.note(name, milliseconds(until))

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the value, or None if a piece is missing."""
        self._begin()
        found = [self._table.get(name) for name in _names(ref)]
        pieces = [piece for piece in found if piece is not None]
        return b"".join(pieces) if len(pieces) == len(found) else None

    async def delete(self, ref: PayloadRef) -> None:
        """Delete a value, by tombstones everywhere."""
        self._begin()
        await self._forget(_names(ref))

    async def sweep(self) -> None:
        """Write the tombstones of expired values that have none yet.

        The reader does so continuously. Evicted values get tombstones too: the topic still has
        them.
        """
        now = milliseconds(self._clock.now())
        if names := self._ends.take_due(now):
            try:
                await self._forget(names)
            except CopyFailed as error:
                _log.warning("%s", error)
                for name in names:
                    self._ends.note(name, now)

    async def _forget(self, names: Sequence[str]) -> None:
        self._deleted.update(names)
        for name in names:
            self._table.drop(name)
        try:
            await self._send(dict.fromkeys(names))
        except CopyFailed:
            self._deleted.difference_update(names)
            raise

    def _begin(self) -> None:
        """Start the reader on first use."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read())

    async def _send(
        self, values: Mapping[str, bytes | None], headers: Sequence[tuple[str, bytes]] = ()
    ) -> None:
        try:
            records = [
                OutgoingRecord(self._topic, key.encode(), value, tuple(headers))
                for key, value in values.items()
            ]
            await self._producer.send(records)
        except (KafkaError, OSError) as error:
            raise CopyFailed(f"topic {self._topic}: {error!r}") from error

    async def _read(self) -> None:
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError) as error:
                _log.warning("topic %s cannot be read: %r", self._topic, error)
                await asyncio.sleep(_AGAIN_S)

    async def _follow(self) -> None:
        consumer = groupless_consumer(self._bootstrap, self._topic)
        try:
            await consumer.start()
            while True:
                for records in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
                    for record in records:
                        self._take(record.key, record.value, dict(record.headers))
                await self.sweep()
        finally:
            await consumer.stop()

    def _take(self, key: bytes | None, value: bytes | None, headers: Mapping[str, bytes]) -> None:
        name = (key or b"").decode("utf-8", "replace")
        if value is None:
            self._deleted.discard(name)
            self._ends.drop(name)
            self._table.drop(name)
            return
        if name in self._deleted:
            return
        self._table.put(name, value)
        until = headers.get(_UNTIL, b"")
        self._ends.note(name, int(until) if until.isdigit() else 0)


def _names(ref: PayloadRef) -> list[str]:
    """Return the keys of a value's pieces; the first, usually the only one, is its digest."""
    name = key_of(ref)
    more = range(1, -(-ref.byte_length // PIECE_BYTES))
    return [name, *(f"{name}#{at}" for at in more)]
