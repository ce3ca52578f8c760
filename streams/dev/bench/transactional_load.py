"""Avro records that a foreign producer writes in transactions, some of which it aborts."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count

import fastavro
import orjson
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from fastavro.types import Schema

from streams.errors import Unavailable
from streams.kafka.clients import range_consumer, reason, transactional_producer

SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "number", "type": "long"},
        {"name": "aborted", "type": "boolean"},
        {"name": "device", "type": "string"},
        {"name": "value", "type": "double"},
    ],
}
SCHEMA_TEXT = orjson.dumps(SCHEMA).decode()
TIMEOUT_S = 120.0
PAUSE_S = 0.02
HEADER_BYTES = 5
Encoded = tuple[int, bytes]
"""The partition of a record and its value."""


class LoadFailed(Unavailable):
    """The records could not be written or read back."""


@dataclass
class LoadCounts:
    """What the producer has done so far."""

    committed: int = 0
    aborted: int = 0
    repeated_transactions: int = 0
    """Transactions that Kafka's death aborted, or whose outcome is unknown; they were repeated."""


@dataclass
class TransactionalLoad:
    """Writes records until `records` are committed; each has a number of its own.

    Every `abort_every`-th transaction is aborted after its records are in the topic.
    """

    bootstrap: str
    topic: str
    schema_id: int
    records: int
    partitions: int
    size: int = 200
    abort_every: int = 5
    counts: LoadCounts = field(default_factory=LoadCounts)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, room: Callable[[], int]) -> None:
        """Write all; `room` says how many records may be written now. Blocks: use a thread."""
        numbers, writer = count(), self._open()
        for transaction in count(1):
            if self.counts.committed >= self.records or self.stop.is_set():
                return
            while room() < self.size and not self.stop.is_set():
                time.sleep(PAUSE_S)
            is_aborted = transaction % self.abort_every == 0
            size = min(self.size, self.records - self.counts.committed)
            writer = self._write(writer, numbers, size, is_aborted=is_aborted)

    def _write(
        self, writer: Producer, numbers: Iterator[int], size: int, *, is_aborted: bool
    ) -> Producer:
        """Write one transaction, again with new numbers if it does not commit."""
        while not self.stop.is_set():
            batch = list(self._encoded(numbers, size, is_aborted=is_aborted))
            try:
                if self._attempt(writer, batch, is_aborted=is_aborted):
                    if is_aborted:
                        self.counts.aborted += size
                    else:
                        self.counts.committed += size
                    return writer
            except KafkaException:
                # Opening again under the same transactional id ends the old transaction.
                writer = self._open()
            self.counts.repeated_transactions += 1
        return writer

    def _attempt(self, writer: Producer, batch: Sequence[Encoded], *, is_aborted: bool) -> bool:
        """Return whether the transaction ended as it should; False: it was aborted by a fault."""
        writer.begin_transaction()
        try:
            for partition, value in batch:
                writer.produce(self.topic, value, partition=partition)
            writer.flush(TIMEOUT_S)
            if is_aborted:
                _patiently(writer.abort_transaction)
            else:
                _patiently(writer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            _patiently(writer.abort_transaction)
            return is_aborted
        return True

    def committed_numbers(self) -> list[int]:
        """Read the topic to its end and return the numbers of its committed records. Blocks."""
        found: list[int] = []
        ends = set(range(self.partitions))
        reader = range_consumer(self.bootstrap, group="noetl.bench")
        try:
            reader.assign([TopicPartition(self.topic, number, 0) for number in ends])
            while ends:
                for message in reader.consume(5000, timeout=1.0):
                    if (error := message.error()) is None:
                        found.append(number_of(message.value() or b""))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        ends.discard(message.partition() or 0)
                    else:
                        raise LoadFailed(f"cannot read {self.topic}: {error.str()}")
        finally:
            reader.close()
        return found

    def _encoded(self, numbers: Iterator[int], size: int, *, is_aborted: bool) -> Iterator[Encoded]:
        parsed = _parsed()
        header = b"\x00" + self.schema_id.to_bytes(4, "big")
        for _ in range(size):
            number, out = next(numbers), io.BytesIO(header)
            out.seek(len(header))
            reading = {"device": f"device-{number % 97}", "value": number / 7}
            fastavro.schemaless_writer(
                out, parsed, {"number": number, "aborted": is_aborted, **reading}
            )
            yield number % self.partitions, out.getvalue()

    def _open(self) -> Producer:
        writer = transactional_producer(self.bootstrap, f"bench-{self.topic}")
        _patiently(writer.init_transactions)
        return writer


def number_of(value: bytes) -> int:
    """Return the number of a record."""
    body = io.BytesIO(value)
    body.seek(HEADER_BYTES)
    found = fastavro.schemaless_reader(body, _parsed(), None)
    assert isinstance(found, dict)
    return int(str(found["number"]))


@lru_cache(maxsize=1)
def _parsed() -> Schema:
    return fastavro.parse_schema(SCHEMA)


def _patiently(call: Callable[[float], object]) -> None:
    """Repeat a call of a transaction while Kafka is away, as its errors allow.

    Raises:
        KafkaException: the call cannot be repeated.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            call(10.0)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            if time.monotonic() > deadline:
                raise LoadFailed(f"a transaction does not end: {reason(error)}") from error
            time.sleep(PAUSE_S)
        else:
            return
