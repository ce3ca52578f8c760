"""Reading of projectors' lag: checkpoints from Postgres, ends and times from Kafka."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

import aiokafka
import asyncpg
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from streams.kafka.clients import groupless_consumer, started
from streams.kafka.errors import FeedUnavailable
from streams.kafka.feed.port import TopicPartition
from streams.kafka.names import event_topic
from streams.kafka.topic_ids import BrokerTopicIds
from streams.postgres import queries, translated
from streams.projector.loop import PROJECTION
from streams.projector.port import ProjectionsUnavailable
from streams.projector.shard_lag import ShardLag, StoredCheckpoint, Unread, lags, newest
from streams.projector.views import ROOTS

query = queries("streams.projector")
_READ_MS = 1000


async def shard_lags(pool: asyncpg.Pool, bootstrap: str) -> Sequence[ShardLag]:
    """Return the lag of each projector's shard.

    Raises:
        ProjectionsUnavailable: Postgres cannot be reached.
        FeedUnavailable: Kafka cannot be reached.
    """
    topics = [event_topic(root) for root in ROOTS]
    ids = await BrokerTopicIds(bootstrap).topic_ids(topics)
    with translated(ProjectionsUnavailable, "read the checkpoints"):
        rows = await pool.fetch(query("checkpoints"), PROJECTION, topics)
    stored = [
        StoredCheckpoint(
            row["shard_id"],
            TopicPartition(row["topic"], row["partition"]),
            row["topic_id"],
            row["next_offset"],
            row["last_position"],
            row["updated_at"],
        )
        for row in rows
    ]
    furthest = newest(stored, ids)
    places = {partition: one.next_offset for partition, one in furthest.items()}
    existing = [topic for topic in topics if ids[topic] is not None]
    unread = await _unread(bootstrap, existing, places)
    return lags(furthest, unread, datetime.now(UTC))


async def _unread(
    bootstrap: str, topics: Collection[str], places: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Unread]:
    try:
        consumer = await started(groupless_consumer(bootstrap, fetch_wait_ms=50))
        try:
            return await _read(consumer, topics, places)
        finally:
            await consumer.stop()
    except KafkaError as error:
        raise FeedUnavailable(
            f"{bootstrap}: cannot read the ends of {', '.join(topics)}: {error!r}; check that "
            "Kafka is up (`streams status`)"
        ) from error


async def _read(
    consumer: AIOKafkaConsumer, topics: Collection[str], places: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Unread]:
    partitions = []
    for topic in topics:
        await consumer._client.add_topic(topic)  # partitions_for_topic does not ask for it
        numbers = consumer.partitions_for_topic(topic) or ()
        partitions += [aiokafka.TopicPartition(topic, number) for number in sorted(numbers)]
    begins = await consumer.beginning_offsets(partitions)
    ends = await consumer.end_offsets(partitions)
    froms = {one: max(begins[one], places.get(_place(one), 0)) for one in partitions}
    oldest = await _stored_at(consumer, {one: at for one, at in froms.items() if at < ends[one]})
    return {
        _place(one): Unread(ends[one] - froms[one] if one in oldest else 0, oldest.get(one))
        for one in partitions
    }


async def _stored_at(
    consumer: AIOKafkaConsumer, froms: Mapping[aiokafka.TopicPartition, int]
) -> dict[aiokafka.TopicPartition, datetime]:
    """Return the time of the first record from each place; those with only markers are omitted."""
    found: dict[aiokafka.TopicPartition, datetime] = {}
    if not froms:
        return found
    consumer.assign(list(froms))
    for one, offset in froms.items():
        consumer.seek(one, offset)
    while read := await consumer.getmany(timeout_ms=_READ_MS):
        for one, records in read.items():
            if one in found or not records:
                continue
            found[one] = datetime.fromtimestamp(records[0].timestamp / 1000, UTC)
            consumer.pause(one)
        if found.keys() == froms.keys():
            break
    return found


def _place(one: aiokafka.TopicPartition) -> TopicPartition:
    return TopicPartition(one.topic, one.partition)
