"""Faust's consumer with exact offsets: commits below the lowest unacknowledged record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakSet

from aiokafka.errors import IllegalStateError, KafkaError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage
from mode import Service

from streams.kafka.errors import ChangelogMissing, DriverFailed
from streams.kafka.feed.port import Record, Standing, TopicPartition
from streams.kafka.transport.delivery import FAUST_LOG, Batches, TopicDelivery
from streams.kafka.transport.readings import PartitionReadings, Reading
from streams.kafka.transport.thread import ConsumerThread, Positions

_log = logging.getLogger(__name__)
COMMIT_EVERY_S = 0.1
POLL_S, POLL_PAUSED_S = 1.0, 0.02
"""How long a fetch waits; the second, while a partition waits for acknowledgements."""
IN_HAND_S = 5.0
"""How long a rebalance waits for batches that agents are handling."""
LAST_COMMIT_S = 3.0
RETRY_S = 0.5
WATCH_S = 0.5
REJOINS, REJOIN_S = 20, 0.5
JOIN_S = 30.0
"""How long a member that joins again waits; one that keeps its assignment gets no notice."""
"""How often, and how long after another, a member asks for the changelogs of its tables."""


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """How the topics of an application are read."""

    fetch_wait_ms: int = 250
    """How long the broker holds an idle fetch; it responds as soon as a record is committed."""
    max_span: int = 4000
    """Records of a partition from the lowest unacknowledged one; at this bound it is paused."""


class Consumer(driver.Consumer):
    """Delivers whole fetches to agents, and commits below the lowest unacknowledged record."""

    app: Any
    logger = FAUST_LOG
    _thread: ConsumerThread

    def _new_consumer_thread(self) -> ConsumerThread:
        self.options: ConsumerOptions = self.app.consumer_options
        self.readings = PartitionReadings()
        self._batched: frozenset[str] = frozenset()
        self._waiting: dict[str, TopicDelivery] = {}
        self._delivered: WeakSet[TopicDelivery] = WeakSet()
        """Deliveries of this generation that an agent may still take from."""
        self._rejoins = 0
        self._has_room = asyncio.Event()
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    # --- reading

    async def perform_seek(self) -> None:
        """Begin at the committed offsets: only now are streams read in this generation."""
        await super().perform_seek()
        self._batched = frozenset(
            name
            for topic in self.app.topics
            if isinstance(topic.schema, Batches)
            for name in topic.topics
        )
        assigned = [TopicPartition(*one) for one in self.assignment()]
        ours = frozenset(one for one in assigned if one.topic in self._batched)
        if self._lacks_tables(ours):
            await self._rejoin()
            return
        self._rejoins = 0
        self.readings.assign(ours)
        self.app.on_assigned(ours)

    def _lacks_tables(self, assigned: Iterable[TopicPartition]) -> bool:
        """Return whether the changelog of an assigned partition is not assigned."""
        tables, topic = self.app.tables, self.app.membership.topics[0]
        return bool(tables.changelog_topics) and any(
            one.partition not in tables.owned for one in assigned if one.topic == topic
        )

    async def _rejoin(self) -> None:
        """Ask for another assignment: a static member gets its old one at first."""
        if self._rejoins == REJOINS:
            raise ChangelogMissing(sorted(self.app.tables.changelog_topics))
        self._rejoins += 1
        await asyncio.sleep(REJOIN_S)
        self.rejoin()

    def rejoin(self) -> None:
        """Join the group again, for another assignment."""
        self._thread.rejoin()

    @property
    def has_no_partitions(self) -> bool:
        """Whether the group was balanced, and this member got no partition."""
        is_balanced = self.app.rebalancing_count > 0 and not self.app.rebalancing
        return is_balanced and not self.readings.by_partition

    async def read_again(self, topics: Collection[str]) -> None:
        """Join the group again, and begin at the first record of what is assigned of topics.

        Raises:
            KafkaError: the broker does not respond.
        """
        before = self.app.rebalancing_count
        self.rejoin()
        with suppress(TimeoutError):
            async with asyncio.timeout(JOIN_S):
                while (  # noqa: ASYNC110 - Faust counts rebalances, and sets no event
                    self.app.rebalancing_count == before or self.app.rebalancing
                ):
                    await asyncio.sleep(REJOIN_S)
        for one in [one for one in self.readings.by_partition if one.topic in topics]:
            await self.move(one, None)

    async def _drain_messages(self, fetcher: Any) -> None:
        try:
            await self._drain(fetcher)
        except asyncio.CancelledError:
            # Faust takes it for a failure if the application stops during a rebalance.
            if not (self.should_stop or fetcher.should_stop):
                raise

    async def _drain(self, fetcher: Any) -> None:
        while not (self.should_stop or fetcher.should_stop):
            if not self.flow_active:
                await self.wait(cast(Any, self.can_resume_flow))
                continue
            epoch, readings = self._thread.epoch, dict(self.readings.by_partition)
            wanted, paused = self._wanted()
            if not wanted:
                await self._wait_for_room()
                continue
            try:
                found, positions = await self._thread.fetch(
                    wanted, epoch, POLL_PAUSED_S if paused else POLL_S
                )
            except self.consumer_stopped_errors:
                if self.app.should_stop:
                    return
                raise
            except KafkaError as error:
                if not error.retriable:
                    raise
                _log.warning("%r; retrying", error)
                await asyncio.sleep(RETRY_S)
                continue
            await self._accept(found, positions, readings, is_stale=epoch != self._thread.epoch)

    def _wanted(self) -> tuple[frozenset[TP], bool]:
        """Return the partitions to read, and whether any is paused for its span."""
        active, changelogs = self._get_active_partitions(), self.app.tables.changelog_topics
        wanted, paused = set(), False
        for one in active:
            if one.topic in changelogs:
                wanted.add(one)
            elif (reading := self.readings.by_partition.get(TopicPartition(*one))) is not None:
                if reading.offsets.span < self.options.max_span and not reading.is_moving:
                    wanted.add(one)
                else:
                    paused = True
        return frozenset(wanted), paused

    async def _wait_for_room(self) -> None:
        self._has_room.clear()
        await self.wait(cast(Any, self._has_room), timeout=POLL_S / 4)

    async def _accept(
        self,
        found: Mapping[TP, list[Any]],
        positions: Positions,
        readings: Mapping[TopicPartition, Reading],
        *,
        is_stale: bool,
    ) -> None:
        """Pass on what one fetch returned, but for partitions that were lost or moved since.

        Changelogs of a stale fetch are read again from the offset of their files.
        """
        changelogs = self.app.tables.changelog_topics
        accepted: list[tuple[TopicPartition, list[Record]]] = []
        for one, position in positions.items():
            records = found.get(one, [])
            if one.topic in changelogs:
                if not is_stale:
                    self.app.tables.recovery.accept(TP(*one), records, position)
                continue
            # No await before all offsets are recorded, so that a commit sees both or neither.
            partition, offsets = TopicPartition(*one), (each.offset for each in records)
            expected = readings.get(partition)
            if self.readings.deliver(partition, expected, offsets, position) and records:
                accepted.append((partition, [_record(partition, each) for each in records]))
        for partition, delivered in accepted:
            if self.readings.by_partition.get(partition) is readings[partition]:
                await self._deliver(partition, delivered)

    async def _deliver(self, partition: TopicPartition, records: list[Record]) -> None:
        waiting = self._waiting.get(partition.topic)
        if waiting is not None and waiting.is_open:
            waiting.add(partition, records)
            return
        delivery = self._waiting[partition.topic] = TopicDelivery()
        self._delivered.add(delivery)
        delivery.add(partition, records)
        last = records[-1]
        message = ConsumerMessage(
            partition.topic,
            partition.partition,
            last.offset,
            last.timestamp_ms / 1000,
            0,
            None,
            None,
            cast(Any, delivery),
            None,
            0,
            0,
            _tp(partition),
            generation_id=self.app.consumer_generation_id,
        )
        # It does not wait: the agent's queue is empty, or the delivery would be open.
        await self.callback(message)

    # --- acknowledging

    def acknowledge(self, records: Iterable[Record]) -> None:
        """Mark records as finished; those of lost partitions are ignored."""
        self.readings.acknowledge(records)
        self._has_room.set()

    def standing(self) -> Standing:
        """Return the offsets between the committed position and the end, and the progress."""
        committed = {_tp(one): offset for one, offset in self.readings.committed.items()}
        return Standing(self._thread.lags(committed), self.readings.progress)

    async def move(self, partition: TopicPartition, offset: int | None) -> None:
        """Continue a partition at an offset, None: at its first; ignored if it was revoked.

        Raises:
            KafkaError: the broker does not respond.
        """
        if partition not in self.readings.by_partition:
            return
        for delivery in self._delivered:
            delivery.discard(partition)
        # What a fetch under way returns is of the old reading, and dropped.
        moved = self.readings.by_partition[partition] = Reading(is_moving=True)
        try:
            await self._thread.move(_tp(partition), offset)
        except IllegalStateError:  # revoked meanwhile
            return
        moved.is_moving = False

    def release(self) -> None:
        """Close the loop of a thread that was never started."""
        self._thread.release()

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        return self._thread.partition_count(topic)

    async def answers(self) -> None:
        """Return once the broker has answered a request."""
        await self._thread.answers()

    async def force_commit(self, topics: Any = None, start_new_transaction: bool = True) -> bool:
        """Commit what changed since the last commit."""
        due = self.readings.due()
        offsets = {_tp(one): offset for one, (_, offset) in due.items()}
        if not offsets or not await self._thread.commit(offsets):
            return False
        for reading, offset in due.values():
            reading.committed = offset
        self.app.monitor.on_tp_commit(offsets)
        return True

    @Service.task
    async def _commit_handler(self) -> None:
        while not self.should_stop:
            await self.wait(cast(Any, self.readings.changed))
            await self.sleep(COMMIT_EVERY_S)
            self.readings.changed.clear()
            if not await self.commit() and self.readings.due():
                self.readings.changed.set()
                await self.sleep(RETRY_S)

    @Service.task
    async def _commit_livelock_detector(self) -> None:
        """Do nothing: each role has a watchdog, which knows when no progress is expected."""

    # --- rebalances and failures

    async def wait_empty(self) -> None:
        """Wait a bounded time for the batches being handled, then commit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(IN_HAND_S):
                await self.readings.hands_empty()
        self._unacked_messages.clear()
        try:
            async with asyncio.timeout(LAST_COMMIT_S):
                await self.commit()
        except TimeoutError:
            _log.warning("the last offsets were not committed in %g s", LAST_COMMIT_S)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Drop what waits for agents; it is delivered again to the next owner."""
        for delivery in self._delivered:
            delivery.drop()
        self._delivered.clear()
        await super().on_partitions_revoked(revoked)
        await self.app.tables.unfence()
        self._waiting = {}
        self.app.on_revoked(self.readings.revoke())

    async def on_task_error(self, exc: BaseException) -> None:
        """End the application; Faust would commit the record that failed."""
        self.readings.freeze()
        await self.app.crash(exc)

    @Service.task
    async def _watch_driver(self) -> None:
        while not self.should_stop:
            await self.sleep(WATCH_S)
            try:
                await self._thread.check_driver()
            except (DriverFailed, KafkaError) as error:
                if self.app.should_stop or getattr(error, "retriable", False):
                    continue
                self.readings.freeze()
                await self.app.crash(error)


def _tp(partition: TopicPartition) -> TP:
    return TP(partition.topic, partition.partition)


def _record(partition: TopicPartition, record: Any) -> Record:
    return Record(
        partition,
        record.offset,
        record.key,
        record.value,
        record.headers,
        record.timestamp,
    )
