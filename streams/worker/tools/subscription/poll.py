"""A bounded poll of a topic: a retried attempt gets the records of the first.

The commit that acknowledges records has the name of the call and their first offset as its
metadata, so that the same call finds them again, and no other call gets them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError
from aiokafka.structs import OffsetAndMetadata

from streams.errors import Refused
from streams.kafka.clients import async_admin, polling_consumer, started

PolledRecord: TypeAlias = "ConsumerRecord[bytes, bytes]"
_Places = Mapping[TopicPartition, OffsetAndMetadata]
_SEPARATOR = "@"


class PollRefused(Refused):
    """The topic does not exist, or the group cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """What to read, and at most how much."""

    bootstrap: str
    topic: str
    group: str
    name: str
    """Name of the call, the same in every attempt."""
    batch: int
    timeout_s: float
    commits: bool


async def poll(asked: Poll) -> list[PolledRecord]:
    """Return the group's next records, and acknowledge them if `commits`.

    Raises:
        PollRefused: the topic does not exist, or the group has members.
        KafkaError: a broker does not answer.
    """
    committed = await _committed(asked.bootstrap, asked.group, asked.topic)
    consumer = await started(polling_consumer(asked.bootstrap, group=asked.group))
    try:
        consumer.assign(list(committed))
        if ranges := _own(committed, asked.name):
            return await _again(consumer, ranges)
        records = await _next(consumer, committed, asked)
        if asked.commits and records:
            await _commit(consumer, records, asked)
        return records
    finally:
        await consumer.stop()


async def acknowledge(bootstrap: str, group: str, ends: Mapping[TopicPartition, int]) -> int:
    """Commit these offsets where the group is behind them; return how many partitions were."""
    topics = {place.topic for place in ends}
    known = {
        place: found
        for topic in topics
        for place, found in (await _committed(bootstrap, group, topic)).items()
    }
    later = {
        place: end for place, end in ends.items() if place in known and known[place].offset < end
    }
    if later:
        consumer = await started(polling_consumer(bootstrap, group=group))
        try:
            consumer.assign(list(later))
            await _committing(consumer, group, {place: (end, "") for place, end in later.items()})
        finally:
            await consumer.stop()
    return len(later)


async def _committed(bootstrap: str, group: str, topic: str) -> _Places:
    """Return the group's place in every partition of the topic; -1: it has none."""
    admin: AIOKafkaAdminClient = async_admin(bootstrap)
    try:
        await admin.start()
        (found,) = await admin.describe_topics([topic])
        if found["error_code"] == UnknownTopicOrPartitionError.errno:
            raise PollRefused(f"topic {topic!r} does not exist; create it, or correct the name")
        places = [TopicPartition(topic, one["partition"]) for one in found["partitions"]]
        known = await admin.list_consumer_group_offsets(group, partitions=places)
    finally:
        await admin.close()
    return {place: known.get(place, OffsetAndMetadata(-1, "")) for place in places}


def _own(committed: _Places, name: str) -> dict[TopicPartition, tuple[int, int]]:
    """Return the ranges that this call has acknowledged before."""
    found = {}
    for place, (offset, metadata) in committed.items():
        owner, _, first = metadata.rpartition(_SEPARATOR)
        if owner == name and first.isdigit():
            found[place] = (int(first), offset)
    return found


async def _again(
    consumer: AIOKafkaConsumer, ranges: Mapping[TopicPartition, tuple[int, int]]
) -> list[PolledRecord]:
    """Read ranges that were read before; they may end at a transaction's marker."""
    records: list[PolledRecord] = []
    for place, (first, end) in ranges.items():
        consumer.seek(place, first)
        while await consumer.position(place) < end:
            found = await consumer.getmany(place, timeout_ms=1000)
            records += [one for one in found.get(place, ()) if one.offset < end]
    return records


async def _next(consumer: AIOKafkaConsumer, committed: _Places, asked: Poll) -> list[PolledRecord]:
    begin = [place for place, found in committed.items() if found.offset < 0]
    if begin:
        await consumer.seek_to_beginning(*begin)
    for place, found in committed.items():
        if found.offset >= 0:
            consumer.seek(place, found.offset)
    by_place = await consumer.getmany(
        timeout_ms=int(asked.timeout_s * 1000), max_records=asked.batch
    )
    return [one for some in by_place.values() for one in some]


async def _commit(consumer: AIOKafkaConsumer, records: Sequence[PolledRecord], asked: Poll) -> None:
    offsets: dict[TopicPartition, list[int]] = {}
    for one in records:
        offsets.setdefault(TopicPartition(one.topic, one.partition), []).append(one.offset)
    ends = {
        place: (max(some) + 1, f"{asked.name}{_SEPARATOR}{min(some)}")
        for place, some in offsets.items()
    }
    await _committing(consumer, asked.group, ends)


async def _committing(
    consumer: AIOKafkaConsumer, group: str, ends: Mapping[TopicPartition, tuple[int, str]]
) -> None:
    try:
        await consumer.commit(dict(ends))
    except KafkaError as error:
        if error.retriable:
            raise
        why = f"group {group!r} does not accept an acknowledgement: {error!r}"
        raise PollRefused(f"{why}; a group with members cannot be polled by a task") from error
