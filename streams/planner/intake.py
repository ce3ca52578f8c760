"""The planner's intake: decodes batches, passes them on, acknowledges last; ticks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from streams.clock import Clock
from streams.errors import PoisonRecord
from streams.events.codec import Codec
from streams.events.model import Event
from streams.kafka.feed.crash_journal import DEATHS
from streams.kafka.feed.port import Feed, Record, TopicPartition
from streams.kafka.records import event_of_record
from streams.log.port import OpenRoots
from streams.planner.loop import Planner
from streams.planner.open_plans import PlanLost

_log = logging.getLogger(__name__)
SetAside = Callable[[Record, str], Awaitable[None]]
PartitionOf = Callable[[int], TopicPartition]
"""Returns the partition of an execution's events."""


class Intake:
    """Feeds one planner from its partitions; a batch and a tick never overlap.

    `Unavailable` is raised: the process retries the batch.
    """

    def __init__(
        self,
        feed: Feed,
        planner: Planner,
        roots: OpenRoots,
        codec: Codec,
        clock: Clock,
        *,
        partition_of: PartitionOf,
        set_aside: SetAside,
    ) -> None:
        self._feed, self.planner, self._roots, self._codec = feed, planner, roots, codec
        self._clock, self._partition_of, self._set_aside = clock, partition_of, set_aside
        self._lock = asyncio.Lock()

    async def handle(self, batch: Mapping[TopicPartition, list[Record]]) -> None:
        """Handle one batch: decode, plan, acknowledge."""
        records = [record for records in batch.values() for record in records]
        if records:
            await self._planned(partial(self._absorb, records))
            self._feed.acknowledge(records)

    async def _absorb(self, records: Sequence[Record]) -> None:
        events: list[Event] = []
        for record in records:
            # Our own events return through the mirror; absorbed ones need not be decoded.
            if self._is_absorbed(record):
                continue
            if (event := await self._event(record)) is not None:
                events.append(event)
        async with self._lock:
            await self.planner.absorb(events)

    async def tick(self) -> None:
        """Run the planner's timers."""
        await self._planned(self._tick)

    async def _tick(self) -> None:
        async with self._lock:
            await self.planner.tick()

    async def _planned(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do work of the planner; plans that the tables lost are read from the log first."""
        while True:
            try:
                await work()
            except PlanLost as lost:
                async with self._lock:
                    await self.planner.read_again(lost.execution_id)
            else:
                return

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Take over the open executions of these partitions."""
        async with self._lock:
            await self._adopt(partitions)

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Drop the executions of partitions that another planner has now."""
        async with self._lock:
            lost = [key for key in self.planner.known if self._partition_of(key) in partitions]
            self.planner.drop(lost)

    async def suspend(self, record: Record) -> None:
        """Suspend the execution of a record that ended the process too often."""
        try:
            execution_id = int(record.key or b"")
        except ValueError:
            return
        reason = f"ended the planner {DEATHS} times: {record.address}"
        async with self._lock:
            await self.planner.suspend(execution_id, reason)

    async def _adopt(self, partitions: frozenset[TopicPartition]) -> None:
        heads = await self._roots.open_roots("execution")
        ours = {key: seq for key, seq in heads.items() if self._partition_of(key) in partitions}
        await self.planner.adopt(ours, self._roots.suspended_executions)

    def _is_absorbed(self, record: Record) -> bool:
        """Return whether the planner has this event already; False if it cannot be read."""
        try:
            root_id, seq = int(record.key or b""), int(dict(record.headers)["seq"] or b"")
        except (KeyError, ValueError):
            return False
        return self.planner.has_absorbed(root_id, seq)

    async def _event(self, record: Record) -> Event | None:
        """Decode the record; a bad one is quarantined, since the log still has the event."""
        try:
            return await event_of_record(
                record.value, record.headers, record.timestamp_ms, self._codec
            )
        except PoisonRecord as error:
            _log.error("%s is quarantined: %s", record.address, error)
            await self._set_aside(record, str(error))
            return None
