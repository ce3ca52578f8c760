"""The dead-letter topic: records that cannot be processed, unchanged, and the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from streams.errors import Unavailable
from streams.kafka.bounded_producer import BoundedProducer, OutgoingRecord
from streams.kafka.feed.port import Record
from streams.metrics.exposition import RoleMetrics
from streams.metrics.metric import Sample
from streams.metrics.processes import DEAD_LETTERS
from streams.retry import CALL_LIMIT_S

TOPIC = "noetl.dead-letters"
MAX_REASON_BYTES = 4000
PREFIX = "dead-letter-"
"""Prefix of the headers added here; the record's own headers are preserved."""

Headers = list[tuple[str, bytes | None]]


class DeadLettersUnavailable(Unavailable):
    """The broker does not accept the dead letter; retrying is safe."""

    dependency = "Kafka"


class DeadLetters(Protocol):
    """Publishes records that cannot be processed, at least once each."""

    async def put(self, record: Record, reason: str, *, kind: str) -> None:
        """Publish `record` with its `reason`, and return once it is durable.

        `kind` is the kind of record: `trigger`, `work`, `event`.

        Raises:
            DeadLettersUnavailable: the broker does not accept it; retrying is safe.
        """
        ...


def headers(record: Record, reason: str, kind: str) -> Headers:
    """Return the headers of a dead letter: the record's own, then the added ones."""
    source = record.topic_partition
    ours = {
        "kind": kind,
        "reason": reason.encode("utf-8", "replace")[:MAX_REASON_BYTES].decode("utf-8", "ignore"),
        "topic": source.topic,
        "partition": str(source.partition),
        "offset": str(record.offset),
        "timestamp-ms": str(record.timestamp_ms),
    }
    own = [(name, value) for name, value in record.headers if not name.startswith(PREFIX)]
    return own + [(PREFIX + name, text.encode()) for name, text in ours.items()]


class KafkaDeadLetters:
    """Publishes to the dead-letter topic; use it as an async context manager."""

    def __init__(
        self,
        bootstrap: str,
        *,
        topic: str = TOPIC,
        limit_s: float = CALL_LIMIT_S,
        metrics: RoleMetrics | None = None,
    ) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._producer = BoundedProducer(bootstrap, limit_s=limit_s)
        self._counts: Counter[str] = Counter()
        if metrics is not None:
            metrics.add(self.samples)

    async def __aenter__(self) -> KafkaDeadLetters:
        try:
            await self._producer.open()
        except KafkaError as error:
            raise self._unavailable(error) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.close()

    async def put(self, record: Record, reason: str, *, kind: str) -> None:
        """Publish `record` with its `reason`, and return once it is durable."""
        letter_headers = headers(record, reason, kind)
        try:
            try:
                await self._send(record.key, record.value, letter_headers)
            except MessageSizeTooLargeError:
                # The added headers can make a record too large. Its bytes are stored as the
                # event's payload; without this the partition would block.
                omitted = (PREFIX + "value-omitted-bytes", str(len(record.value or b"")).encode())
                await self._send(None, None, [*headers(_bare(record), reason, kind), omitted])
        except KafkaError as error:
            raise self._unavailable(error) from error
        self._counts[kind] += 1

    def samples(self) -> Iterator[Sample]:
        """Yield how many were published, by kind."""
        for kind, count in self._counts.items():
            yield Sample(DEAD_LETTERS, count, (kind,))

    async def _send(self, key: bytes | None, value: bytes | None, letter_headers: Headers) -> None:
        if key is None and value is None:  # the driver rejects such a record
            value, letter_headers = b"", [*letter_headers, (PREFIX + "value-was-null", b"true")]
        await self._producer.send([OutgoingRecord(self._topic, key, value, tuple(letter_headers))])

    def _unavailable(self, error: KafkaError) -> DeadLettersUnavailable:
        return DeadLettersUnavailable(
            f"{self._bootstrap}: {self._topic} does not accept a dead letter: {error!r}; "
            "check that Kafka is up (`streams status`) and has it (`streams topics apply`)"
        )


def _bare(record: Record) -> Record:
    return Record(record.topic_partition, record.offset, None, None, (), record.timestamp_ms)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One dead letter in memory."""

    record: Record
    reason: str
    kind: str


@dataclass(slots=True)
class MemoryDeadLetters:
    """Stores dead letters in a list, for tests and the simulator."""

    letters: list[DeadLetter] = field(default_factory=list)

    async def put(self, record: Record, reason: str, *, kind: str) -> None:
        """Store it."""
        self.letters.append(DeadLetter(record, reason, kind))
