"""The trigger topic on the broker: its limits, its records, its group's offsets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streams.kafka.clients import range_consumer, reason
from streams.kafka.errors import FeedUnavailable
from streams.trigger.lookup import Range


class TriggerTopic:
    """Reads a topic without joining its group; its calls block. Close it after use."""

    def __init__(self, bootstrap: str, topic: str, *, group: str, timeout_s: float = 15.0) -> None:
        self._bootstrap, self.topic, self._timeout_s = bootstrap, topic, timeout_s
        # The group id serves to read its offsets; manual assignment does not join it.
        self._consumer = range_consumer(bootstrap, group=group)

    def close(self) -> None:
        """Release the connection."""
        self._consumer.close()

    def limits(self) -> Mapping[int, Range]:
        """Return each partition's first offset and end, as `read_committed` sees them.

        Raises:
            FeedUnavailable: the broker cannot be reached, or the topic does not exist.
        """
        try:
            found = self._consumer.list_topics(self.topic, timeout=self._timeout_s)
            described = found.topics[self.topic]
            if described.error is not None:
                raise KafkaException(described.error)
            return {number: self._limits(number) for number in sorted(described.partitions)}
        except KafkaException as error:
            raise self._unavailable(error) from error

    def committed(self) -> Mapping[int, int]:
        """Return the group's committed offsets."""
        partitions = [TopicPartition(self.topic, number) for number in self.limits()]
        try:
            found = self._consumer.committed(partitions, timeout=self._timeout_s)
        except KafkaException as error:
            raise self._unavailable(error) from error
        return {one.partition: one.offset for one in found if one.offset >= 0}

    def offsets(self, partition: int, within: Range) -> list[int]:
        """Return the offsets of records within a range.

        The others hold transaction markers or aborted records.
        """
        first, until = within
        self._consumer.assign([TopicPartition(self.topic, partition, first)])
        found: list[int] = []
        deadline = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline:
            for message in self._poll():
                if (error := message.error()) is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        return found
                    raise self._unavailable(KafkaException(error))
                if message.offset() >= until:
                    return found
                found.append(message.offset())
                deadline = time.monotonic() + self._timeout_s
            if found and found[-1] == until - 1:
                return found
        raise FeedUnavailable(
            f"{self._bootstrap}: {self.topic}/{partition} was not read up to {until} "
            f"within {self._timeout_s:.0f} s; try again"
        )

    def _poll(self) -> list[Any]:
        first = self._consumer.poll(0.2)
        return [] if first is None else [first, *self._consumer.consume(1000, timeout=0)]

    def _limits(self, partition: int) -> Range:
        topic_partition = TopicPartition(self.topic, partition)
        found = self._consumer.get_watermark_offsets(
            topic_partition, timeout=self._timeout_s, cached=False
        )
        if found is None:
            raise FeedUnavailable(f"{self._bootstrap}: no answer about {self.topic}/{partition}")
        return int(found[0]), int(found[1])

    def _unavailable(self, error: KafkaException) -> FeedUnavailable:
        return FeedUnavailable(
            f"{self._bootstrap}: cannot read {self.topic}: {reason(error)}; "
            "check that Kafka is up and has it (`streams topics apply`)"
        )
