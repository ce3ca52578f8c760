"""The batch consumer of Kafka: read_committed, commits below the lowest unfinished record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from aiokafka import ConsumerRebalanceListener
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaError,
    UnknownTopicOrPartitionError,
)

from streams.kafka.clients import group_consumer
from streams.kafka.errors import FeedUnavailable
from streams.kafka.feed.offsets import Offsets
from streams.kafka.feed.port import Notice, Record, Standing, TopicPartition, no_notice

_log = logging.getLogger(__name__)
_COMMIT_EVERY_S = 0.1
_LAST_COMMIT_S = 3.0
_RETRY_S = 0.5


class KafkaFeed:
    """Reads topics as one static member of a consumer group; an async context manager.

    `instance` must be unique to this process and stable across restarts: the broker then
    reassigns its partitions to it at once. `max_span` bounds the records of a partition
    between the lowest unfinished one and the newest; a partition at its bound is paused, so
    the last batch may exceed it. `fetch_wait_ms` bounds how long the broker holds an idle
    fetch: it responds as soon as a record is committed, so a long wait costs nothing.
    `gather_s` is a pause between batches, for consumers without latency requirements.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Iterable[str],
        *,
        group: str,
        instance: str,
        on_assigned: Notice = no_notice,
        on_revoked: Notice = no_notice,
        max_span: int = 4000,
        max_records: int = 500,
        idle_s: float = 0.5,
        fetch_wait_ms: int = 250,
        gather_s: float = 0.0,
    ) -> None:
        self._bootstrap, self._topics = bootstrap, tuple(topics)
        self._group, self._instance = group, instance
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._max_span, self._max_records = max_span, max_records
        self._idle_ms, self._fetch_wait_ms = int(idle_s * 1000), fetch_wait_ms
        self._gather_s = gather_s
        self._offsets: dict[TopicPartition, Offsets] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._notices: list[tuple[Notice, frozenset[TopicPartition]]] = []
        self._progress = 0
        self._wake = asyncio.Event()
        self._failure: FeedUnavailable | None = None
        self._consumer: Any = None
        self._committer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> KafkaFeed:
        self._consumer = group_consumer(
            self._bootstrap,
            group=self._group,
            instance=self._instance,
            fetch_wait_ms=self._fetch_wait_ms,
            max_records=self._max_records,
        )
        self._consumer.subscribe(list(self._topics), listener=_Listener(self))
        try:
            await self._consumer.start()
        except BaseException as error:
            await self._consumer.stop()
            if isinstance(error, KafkaError):
                raise self._unavailable(error) from error
            raise
        self._committer = asyncio.create_task(self._commit_loop(), name="commit offsets")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._committer is not None
        self._committer.cancel()
        await asyncio.gather(self._committer, return_exceptions=True)
        with suppress(KafkaError, IllegalStateError, TimeoutError):
            await asyncio.wait_for(self._commit(), _LAST_COMMIT_S)
        await self._consumer.stop()

    async def next_batch(self) -> Mapping[TopicPartition, list[Record]]:
        """Wait for records and return them; empty after the idle timeout.

        Raises:
            FeedUnavailable: the broker refuses this consumer; retrying will not help.
        """
        if self._failure is not None:
            raise self._failure
        if self._gather_s:
            await asyncio.sleep(self._gather_s)
        await self._notify()
        self._pause_and_resume()
        try:
            found = await self._consumer.getmany(timeout_ms=self._idle_ms)
        except KafkaError as error:
            if not error.retriable:
                raise self._unavailable(error) from error
            _log.warning("%s: %r; retrying", self._bootstrap, error)
            await asyncio.sleep(_RETRY_S)
            return {}
        # No await since the position moved, so that a commit sees both or neither.
        batch = {TopicPartition(*one): _records(records) for one, records in found.items()}
        for partition, records in batch.items():
            offsets = self._offsets[partition]
            for record in records:
                offsets.deliver(record.offset)
        self._wake.set()
        delivered = {partition: self._offsets[partition] for partition in batch}
        await self._notify()
        # A notice may have set another position: those records are delivered again from there.
        return {
            partition: records
            for partition, records in batch.items()
            if self._offsets.get(partition) is delivered[partition]
        }

    def acknowledge(self, records: Iterable[Record]) -> None:
        """Mark records as finished; those of lost partitions are ignored."""
        for record in records:
            offsets = self._offsets.get(record.topic_partition)
            if offsets is not None and offsets.finish(record.offset):
                self._progress += 1
        self._wake.set()

    def standing(self) -> Standing:
        """Return the offsets between the committed position and the end, and the progress."""
        behind = 0
        for partition, committed in self._committed.items():
            with suppress(AssertionError):  # just revoked
                stable = self._consumer.last_stable_offset(_kafka(partition))
                behind += max(0, (stable or 0) - committed)
        return Standing(behind, self._progress)

    async def answers(self, *, within_s: float) -> bool:
        """Return whether the broker responds within this time."""
        try:
            # Any request that only the broker can answer; of a partition, its leader.
            probe = [_kafka(one) for one in list(self._offsets)[:1]]
            async with asyncio.timeout(within_s):
                await (self._consumer.end_offsets(probe) if probe else self._consumer.topics())
        except (KafkaError, TimeoutError):
            return False
        return True

    async def seek(self, partition: TopicPartition, offset: int | None) -> None:
        """Continue a partition at an offset, None: at its first; for use by `on_assigned`.

        Raises:
            FeedUnavailable: the broker does not respond.
        """
        kafka_partition = _kafka(partition)
        try:
            if offset is None:
                offset = (await self._consumer.beginning_offsets([kafka_partition]))[
                    kafka_partition
                ]
            self._consumer.seek(kafka_partition, offset)
        except IllegalStateError:  # revoked meanwhile
            return
        except (KafkaError, TimeoutError) as error:
            raise self._unavailable(error) from error
        self._offsets[partition] = Offsets()
        self._committed.pop(partition, None)

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._offsets)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        return len(self._consumer.partitions_for_topic(topic) or ())

    async def _notify(self) -> None:
        while self._notices:
            notice, partitions = self._notices[0]
            await notice(partitions)
            # Removed only now: a notice that raised Unavailable is repeated.
            self._notices.pop(0)

    def _pause_and_resume(self) -> None:
        for partition, offsets in self._offsets.items():
            kafka_partition = _kafka(partition)
            if partition not in self._paused and offsets.span >= self._max_span:
                self._consumer.pause(kafka_partition)
                self._paused.add(partition)
            elif partition in self._paused and offsets.span <= self._max_span // 2:
                self._consumer.resume(kafka_partition)
                self._paused.remove(partition)

    async def _commit_loop(self) -> None:
        try:
            while True:
                await self._wake.wait()
                await asyncio.sleep(_COMMIT_EVERY_S)
                self._wake.clear()
                try:
                    with suppress(CommitFailedError, IllegalStateError):  # rebalanced
                        await self._commit()
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    _log.warning("%s: offsets not committed: %r; retrying", self._bootstrap, error)
                    self._wake.set()
                    await asyncio.sleep(_RETRY_S)
        except KafkaError as error:
            self._failure = self._unavailable(error)

    async def _commit(self) -> None:
        """Commit offsets that changed since the last commit."""
        due = {}
        for partition in tuple(self._offsets):
            kafka_partition = _kafka(partition)
            try:
                # Not wait_for: on Python 3.11 it may lose the cancellation that ends the feed.
                async with asyncio.timeout(1.0):
                    position = await self._consumer.position(kafka_partition)
            except (TimeoutError, IllegalStateError):  # not known yet, or lost
                continue
            offsets = self._offsets.get(partition)
            if offsets is None:
                continue
            offset = offsets.committable(position)
            if offset > self._committed.get(partition, -1):
                due[kafka_partition] = offset
        if due:
            await self._consumer.commit(due)
            for one, offset in due.items():
                if (partition := TopicPartition(*one)) in self._offsets:
                    self._committed[partition] = offset

    async def _revoked(self) -> None:
        with suppress(KafkaError, IllegalStateError, TimeoutError):
            await asyncio.wait_for(self._commit(), _LAST_COMMIT_S)
        if lost := frozenset(self._offsets):
            self._notices.append((self._on_revoked, lost))
        self._offsets, self._committed, self._paused = {}, {}, set()

    def _assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._offsets = {partition: Offsets() for partition in sorted(partitions)}
        self._notices.append((self._on_assigned, partitions))

    def _unavailable(self, error: KafkaError | TimeoutError) -> FeedUnavailable:
        what = f"{self._bootstrap}: group {self._group} cannot read {', '.join(self._topics)}"
        todo = (
            "create the topics with `streams topics apply`"
            if isinstance(error, UnknownTopicOrPartitionError)
            else "check that Kafka is up (`streams status`)"
        )
        return FeedUnavailable(f"{what}: {error!r}; {todo}")


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the driver is untyped
    """Records rebalances; `next_batch` notifies the agents of them, so that slow agents do not
    delay heartbeats and the driver does not swallow their exceptions."""

    def __init__(self, feed: KafkaFeed) -> None:
        self._feed = feed

    async def on_partitions_revoked(self, revoked: set[KafkaPartition]) -> None:
        await self._feed._revoked()

    async def on_partitions_assigned(self, assigned: set[KafkaPartition]) -> None:
        self._feed._assigned(frozenset(TopicPartition(*one) for one in assigned))


def _kafka(partition: TopicPartition) -> KafkaPartition:
    return KafkaPartition(partition.topic, partition.partition)


def _records(found: list[Any]) -> list[Record]:
    partition = TopicPartition(found[0].topic, found[0].partition)
    return [
        Record(partition, one.offset, one.key, one.value, one.headers, one.timestamp)
        for one in found
    ]
