"""Records of a range of offsets, without a consumer group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import Message as KafkaMessage
from confluent_kafka import TopicPartition as KafkaPartition

from streams.kafka.clients import range_consumer, reason
from streams.kafka.errors import FeedUnavailable
from streams.kafka.feed.port import Record, TopicPartition

PART = 500
TIMEOUT_S = 15.0


async def range_records(
    bootstrap: str, partition: TopicPartition, first: int, until: int
) -> AsyncIterator[Sequence[Record]]:
    """Read committed records from `first` up to, excluding, `until`, in parts.

    Records that the broker has deleted are left out.

    Raises:
        FeedUnavailable: the broker cannot be read.
    """
    consumer = range_consumer(bootstrap, group="noetl.subscription.replay")
    try:
        ends = False
        await asyncio.to_thread(_assign, consumer, bootstrap, partition, first)
        while not ends:
            records, ends = await asyncio.to_thread(_part, consumer, bootstrap, partition, until)
            if records:
                yield records
    finally:
        await asyncio.to_thread(consumer.close)


def _assign(consumer: Consumer, bootstrap: str, partition: TopicPartition, first: int) -> None:
    place = KafkaPartition(partition.topic, partition.partition)
    try:
        found = consumer.get_watermark_offsets(place, timeout=TIMEOUT_S, cached=False)
    except KafkaException as error:
        raise _unavailable(bootstrap, partition, reason(error)) from error
    low = 0 if found is None else int(found[0])
    consumer.assign([KafkaPartition(partition.topic, partition.partition, max(first, low))])


def _part(
    consumer: Consumer, bootstrap: str, partition: TopicPartition, until: int
) -> tuple[list[Record], bool]:
    """Return some records, and whether the range ends with them."""
    records: list[Record] = []
    for message in consumer.consume(PART, timeout=1.0):
        if (error := message.error()) is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                return records, True
            raise _unavailable(bootstrap, partition, error.str())
        record = _record(partition, message)
        if record.offset >= until:
            return records, True
        records.append(record)
    return records, bool(records) and records[-1].offset == until - 1


def _record(partition: TopicPartition, message: KafkaMessage) -> Record:
    given = message.headers()
    pairs = given.items() if isinstance(given, dict) else given or ()
    headers = tuple((str(pair[0]), _bytes(pair[1])) for pair in pairs)
    offset, (_, timestamp_ms) = message.offset(), message.timestamp()
    assert offset is not None
    key, value = _bytes(message.key()), _bytes(message.value())
    return Record(partition, offset, key, value, headers, timestamp_ms)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _unavailable(bootstrap: str, partition: TopicPartition, why: str) -> FeedUnavailable:
    return FeedUnavailable(f"{bootstrap}: cannot read {partition}: {why}; check that Kafka is up")
