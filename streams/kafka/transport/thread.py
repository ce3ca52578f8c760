"""Faust's consumer thread, which owns the driver: read committed, records with their positions."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from aiokafka.errors import CommitFailedError, ConsumerStoppedError, IllegalStateError, KafkaError
from aiokafka.structs import OffsetAndMetadata
from aiokafka.structs import TopicPartition as KafkaPartition
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP
from mode.threads import WorkerThread

from streams.kafka.clients import ISOLATION
from streams.kafka.errors import DriverFailed
from streams.kafka.transport.delivery import FAUST_LOG

_log = logging.getLogger(__name__)
_JOIN_S = 5.0
Positions = Mapping[TP, int]
"""The next offset to read of each partition: past markers and holes."""
Fetched = tuple[Mapping[TP, list[Any]], Positions]


class DaemonThread(WorkerThread):
    """A thread that does not hold up the process: after a failure nobody stops it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.daemon = True

    def stop(self) -> None:
        """Wait a bounded time for the thread to end; Faust's waits forever."""
        self.is_stopped.wait(_JOIN_S)


class ConsumerThread(AIOKafkaConsumerThread):
    """Reads committed records, and returns them with the positions of the same moment."""

    logger = FAUST_LOG
    Worker = DaemonThread
    consumer: Any
    epoch = 0
    """Incremented when partitions are revoked or moved: a fetch under way takes nothing more."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Hard-coded by Faust; the driver reads them when it starts.
        consumer._isolation_level = ISOLATION
        consumer._fetch_max_wait_ms = self.consumer.options.fetch_wait_ms
        return consumer

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Count the rebalance, then pass it on."""
        self.epoch += 1
        await super().on_partitions_revoked(revoked)

    async def fetch(self, wanted: frozenset[TP], epoch: int, timeout_s: float) -> Fetched:
        """Wait for records of these partitions, or for their positions to move past markers."""
        # Not `call_thread`: its queue costs more than the fetch of a small batch.
        fetching = asyncio.run_coroutine_threadsafe(
            self._fetch(wanted, epoch, timeout_s), self.thread_loop
        )
        return await asyncio.wrap_future(fetching)

    async def _fetch(self, wanted: frozenset[TP], epoch: int, timeout_s: float) -> Fetched:
        consumer = self._ensure_consumer()
        fetcher, subscriptions = consumer._fetcher, consumer._subscription
        ends_at, before = time.monotonic() + timeout_s, self._positions(wanted)
        while True:
            if consumer._closed or fetcher._closed:
                raise ConsumerStoppedError
            if epoch != self.epoch or subscriptions.reassignment_in_progress:
                return {}, {}
            with subscriptions.fetch_context():
                # Without a timeout nothing is awaited between the records and their positions.
                found = await fetcher.fetched_records(
                    wanted, timeout=0, max_records=consumer._max_poll_records
                )
            positions, left_s = self._positions(wanted), ends_at - time.monotonic()
            if found or left_s <= 0 or positions != before:
                return found, positions
            waiter = fetcher._create_fetch_waiter()
            done, _ = await asyncio.wait([waiter], timeout=left_s)
            if done:
                waiter.result()
            else:
                waiter.cancel()

    def release(self) -> None:
        """Close the event loop if the thread was never started: then nobody else does."""
        if not self.thread_loop.is_running() and not self.thread_loop.is_closed():
            self.thread_loop.close()

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has; Faust asks only the group's leader."""
        return len(self._ensure_consumer().partitions_for_topic(topic) or ())

    def rejoin(self) -> None:
        """Join the group again, for another assignment."""
        asyncio.run_coroutine_threadsafe(self._rejoin(), self.thread_loop)

    async def _rejoin(self) -> None:
        consumer = self._ensure_consumer()
        # The assignor ignores topics that the metadata, refreshed every 5 min, does not have.
        await consumer._client.force_metadata_update()
        consumer._coordinator.request_rejoin()

    async def move(self, partition: TP, offset: int | None) -> None:
        """Continue a partition at an offset, None: at its first."""
        await self.call_thread(self._move, KafkaPartition(*partition), offset)

    async def _move(self, partition: KafkaPartition, offset: int | None) -> None:
        consumer = self._ensure_consumer()
        if offset is None:
            offset = (await consumer.beginning_offsets([partition]))[partition]
        self.epoch += 1
        consumer.seek(partition, offset)

    async def answers(self) -> None:
        """Return once the broker has answered a request; of a partition, its leader."""
        await self.call_thread(self._answers)

    async def _answers(self) -> None:
        consumer = self._ensure_consumer()
        probe = list(consumer.assignment())[:1]
        await (consumer.end_offsets(probe) if probe else consumer.topics())

    def _positions(self, partitions: frozenset[TP]) -> Positions:
        subscription = self._ensure_consumer()._subscription.subscription
        if subscription is None or subscription.assignment is None:
            return {}
        states = ((one, subscription.assignment.state_value(one)) for one in partitions)
        return {one: state.position for one, state in states if state and state.has_valid_position}

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit offsets; False if a rebalance or the broker prevented it."""
        due = {KafkaPartition(*one): OffsetAndMetadata(at, "") for one, at in offsets.items()}
        try:
            with suppress(CommitFailedError, IllegalStateError):  # rebalanced
                await self._ensure_consumer().commit(due)
                return True
        except KafkaError as error:
            if not error.retriable:
                raise
            _log.warning("offsets not committed: %r; retrying", error)
        return False

    def lags(self, committed: Mapping[TP, int]) -> int:
        """Return the offsets between committed positions and the last stable offsets."""
        behind = 0
        for partition, offset in committed.items():
            with suppress(AssertionError):  # just revoked
                stable = self._ensure_consumer().last_stable_offset(KafkaPartition(*partition))
                behind += max(0, (stable or 0) - offset)
        return behind

    async def check_driver(self) -> None:
        """Raise what ended a task of the driver, or made the group refuse this member.

        Nobody else notices: records would only cease to arrive.

        Raises:
            DriverFailed: a task ended.
            KafkaError: the group refuses this member.
        """
        await self.call_thread(self._check_driver)

    async def _check_driver(self) -> None:
        consumer = self._consumer
        if consumer is None or consumer._closed or consumer._coordinator is None:
            return
        coordinator, fetcher = consumer._coordinator, consumer._fetcher
        for name, task in (
            ("coordination", coordinator._coordination_task),
            ("fetch", fetcher._fetch_task),
        ):
            if task is not None and task.done():
                reason = None if task.cancelled() else task.exception()
                raise DriverFailed(name, reason) from reason
        coordinator.check_errors()
