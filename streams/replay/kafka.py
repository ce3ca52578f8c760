"""Places of an execution by offsets of its mirrored topic."""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from streams.errors import PoisonRecord
from streams.events.model import Root
from streams.kafka.clients import groupless_consumer, started
from streams.kafka.errors import FeedUnavailable
from streams.kafka.names import event_topic
from streams.kafka.partitions import partition_of_id
from streams.kafka.records import assigned_of
from streams.replay.cutoff import KafkaOffset
from streams.replay.errors import BadCutoff

READ_MS = 1000
MAX_RECORDS = 5000


class KafkaOffsets:
    """Reads a partition up to an offset: the last record of the root is the place.

    A mirrored topic is derived and may have been rebuilt; offsets are those of the topic as it
    is now.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    async def seq_at_offset(self, root: Root, offset: KafkaOffset) -> int:
        """Return the last place of `root` at or below an offset of its partition."""
        if offset.topic != event_topic(root.type):
            raise BadCutoff(f"{offset}: events of {root} are on {event_topic(root.type)}")
        try:
            consumer = await started(groupless_consumer(self._bootstrap))
            try:
                return await self._read(consumer, root, offset)
            finally:
                await consumer.stop()
        except KafkaError as error:
            raise FeedUnavailable(f"{self._bootstrap}: cannot read {offset}: {error!r}") from error

    async def _read(self, consumer: AIOKafkaConsumer, root: Root, offset: KafkaOffset) -> int:
        await consumer._client.add_topic(offset.topic)  # partitions_for_topic does not ask for it
        partitions = consumer.partitions_for_topic(offset.topic) or set()
        if offset.partition not in partitions:
            raise BadCutoff(f"{offset}: the topic has the partitions 0 to {len(partitions) - 1}")
        home = partition_of_id(root.id, len(partitions))
        if offset.partition != home:
            raise BadCutoff(f"{offset}: events of {root} are in partition {home}")
        partition = TopicPartition(offset.topic, offset.partition)
        consumer.assign([partition])
        begin = (await consumer.beginning_offsets([partition]))[partition]
        end = (await consumer.end_offsets([partition]))[partition]
        if not begin <= offset.offset < end:
            raise BadCutoff(f"{offset}: the partition has the offsets {begin} to {end - 1}")
        consumer.seek(partition, begin)
        seq, key = 0, str(root.id).encode()
        while await consumer.position(partition) <= offset.offset:
            found = await consumer.getmany(partition, timeout_ms=READ_MS, max_records=MAX_RECORDS)
            for record in found.get(partition, ()):
                if record.offset > offset.offset:
                    break
                if record.key == key:
                    seq = max(seq, _seq_of(record.headers, record.timestamp, offset))
        if seq == 0:
            raise BadCutoff(f"{offset}: no event of {root} is at or below it")
        return seq


def _seq_of(headers: object, timestamp: int, offset: KafkaOffset) -> int:
    try:
        return assigned_of(dict(headers or ()), timestamp).seq  # type: ignore[call-overload]
    except PoisonRecord as error:
        raise BadCutoff(f"{offset}: {error}") from error
