"""The mirror's position, for callers that wait until their appends are on Kafka.

A watermark is an LSN. A message written to the WAL after the caller's commit is mirrored in
order with the events, so once it is on Kafka, everything before it is, too.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any
from uuid import uuid4

import asyncpg
import orjson
from confluent_kafka import KafkaException, TopicPartition

from streams.errors import Unavailable
from streams.kafka.clients import reason, tail_consumer
from streams.postgres import connecting

TOPIC = "noetl.mirror.message"
PREFIX = "noetl.mirror.watermark"
_EMIT = "SELECT pg_logical_emit_message(false, $1, $2, true) - '0/0'::pg_lsn"


class MirrorBehind(Unavailable):
    """The mirror did not reach an LSN in time."""

    def __init__(self, lsn: int, seen: int, seconds: float) -> None:
        super().__init__(
            f"the mirror has not reached {lsn_text(lsn)} within {seconds:.0f} s "
            f"(it is at {lsn_text(seen)}); see `streams mirror check`"
        )
        self.lsn, self.seen = lsn, seen


class Watermark:
    """Follows the mirror's messages on Kafka."""

    def __init__(self, dsn: str, bootstrap: str) -> None:
        self._dsn, self._bootstrap = dsn, bootstrap
        self._seen = 0
        self._moved = asyncio.Condition()
        self._stop = threading.Event()

    async def __aenter__(self) -> Watermark:
        self._loop = asyncio.get_running_loop()
        self._consumer = await asyncio.to_thread(self._open)
        self._thread = threading.Thread(target=self._follow, name="watermark", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.to_thread(self._thread.join)

    @property
    def seen(self) -> int:
        """The newest mirrored LSN."""
        return self._seen

    async def catch_up(self, *, timeout_s: float = 30.0) -> int:
        """Wait until everything committed so far is on Kafka; return its LSN.

        Raises:
            MirrorBehind: it took longer than `timeout_s`.
        """
        with connecting(Unavailable):
            connection = await asyncpg.connect(self._dsn, timeout=10)
        try:
            lsn = int(await connection.fetchval(_EMIT, PREFIX, uuid4().hex))
        finally:
            await connection.close()
        await self.reach(lsn, timeout_s=timeout_s)
        return lsn

    async def reach(self, lsn: int, *, timeout_s: float = 30.0) -> None:
        """Return once the mirror is at `lsn` or beyond.

        Raises:
            MirrorBehind: it took longer than `timeout_s`.
        """
        try:
            async with asyncio.timeout(timeout_s), self._moved:
                await self._moved.wait_for(lambda: self._seen >= lsn)
        except TimeoutError as error:
            raise MirrorBehind(lsn, self._seen, timeout_s) from error

    async def round_trip(self, *, timeout_s: float = 30.0) -> float:
        """Return the seconds from a write to Postgres until it is readable from Kafka."""
        started = self._loop.time()
        await self.catch_up(timeout_s=timeout_s)
        return self._loop.time() - started

    def _open(self) -> Any:
        consumer = tail_consumer(self._bootstrap, group="noetl.watermark", fetch_wait_ms=20)
        partition = TopicPartition(TOPIC, 0)
        try:
            _, end = consumer.get_watermark_offsets(partition, timeout=15)
        except KafkaException as error:
            consumer.close()
            raise Unavailable(f"cannot read {TOPIC}: {reason(error)}") from error
        consumer.assign([TopicPartition(TOPIC, 0, end)])
        return consumer

    def _follow(self) -> None:
        while not self._stop.is_set():
            newest = 0
            # `consume` alone waits for its whole timeout even when a message is available.
            first = self._consumer.poll(0.1)
            for message in [first, *self._consumer.consume(num_messages=500, timeout=0)]:
                if message is not None and not message.error():
                    newest = max(newest, lsn_of(message.value()))
            if newest:
                with suppress(RuntimeError):  # the loop is closed
                    asyncio.run_coroutine_threadsafe(self._move(newest), self._loop)
        self._consumer.close()

    async def _move(self, lsn: int) -> None:
        async with self._moved:
            self._seen = max(self._seen, lsn)
            self._moved.notify_all()


def lsn_of(value: bytes | None) -> int:
    """Return the LSN in a Debezium message record; 0 where it has none."""
    try:
        source = orjson.loads(value or b"{}").get("source") or {}
        return int(source.get("lsn") or 0)
    except (orjson.JSONDecodeError, AttributeError, ValueError):
        return 0


def lsn_text(lsn: int) -> str:
    """Format an LSN as Postgres does."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
