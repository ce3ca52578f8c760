"""Follows `__consumer_offsets`, which has every commit with its time."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streams.kafka.clients import range_consumer
from streams.lag.commit_records import OFFSETS_TOPIC, Position, decode, partition_of
from streams.lag.evaluation import OffsetCommit, window_of

TAIL_COUNT = 20_000
"""Offsets read back from the end of each partition; a window of commits is rarely older."""
_MOST_COMMITS, _KEPT_COMMITS = 256, 32
_TIMEOUT_S = 10.0


class CommitHistory:
    """Commits of the groups that are asked for; its calls block.

    Where the topic may not be read, or not in time, there are no commits: lag is still
    reported, but without status, trend and rates.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._consumer: Any = None
        self._positions: dict[int, int] = {}
        self._commits: dict[Position, list[OffsetCommit]] = {}
        self.problem: str | None = None
        """Why there are no commits; None if there are."""

    def read(self, groups: Collection[str]) -> dict[Position, tuple[OffsetCommit, ...]]:
        """Return the newest commits of these groups, oldest first."""
        try:
            self._read(groups)
            self.problem = None
        except KafkaException as error:
            self.problem = f"{OFFSETS_TOPIC} cannot be read: {error.args[0].str()}"
            self.close()
        return {
            position: tuple(commits)
            for position, commits in self._commits.items()
            if position[0] in groups
        }

    def close(self) -> None:
        """Close the consumer; the next read opens another."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._positions, self._commits = None, {}, {}

    def _read(self, groups: Collection[str]) -> None:
        if self._consumer is None:
            self._consumer = range_consumer(self._bootstrap, group="noetl.tools", fetch_wait_ms=10)
        topic = self._consumer.list_topics(OFFSETS_TOPIC, timeout=_TIMEOUT_S).topics[OFFSETS_TOPIC]
        if topic.error is not None:
            raise KafkaException(topic.error)
        count = len(topic.partitions)
        wanted = {partition_of(group, count) for group in groups}
        ends = {}
        for number in wanted | self._positions.keys():
            low, ends[number] = self._consumer.get_watermark_offsets(
                TopicPartition(OFFSETS_TOPIC, number), timeout=_TIMEOUT_S, cached=False
            )
            self._positions.setdefault(number, max(low, ends[number] - TAIL_COUNT))
        self._consumer.assign(
            [TopicPartition(OFFSETS_TOPIC, *one) for one in self._positions.items()]
        )
        self._advance(ends)

    def _advance(self, ends: dict[int, int]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while any(self._positions[number] < end for number, end in ends.items()):
            if time.monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            # `consume` waits until its batch is full: poll for one, then take the rest.
            first = self._consumer.poll(0.1)
            if first is not None:
                for message in (first, *self._consumer.consume(1000, timeout=0)):
                    self._accept(message)

    def _accept(self, message: Any) -> None:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        at = message.offset() + (error is None)
        self._positions[message.partition()] = max(self._positions[message.partition()], at)
        record = None if error is not None else decode(message.key(), message.value())
        if record is None:
            return
        if record.commit is None:
            self._commits.pop(record.position, None)
            return
        commits = self._commits.setdefault(record.position, [])
        commits.append(record.commit)
        if len(commits) > _MOST_COMMITS:
            commits[:] = window_of(commits, count=_KEPT_COMMITS)
