"""The runtime's ports in memory, with injected faults."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Unpack

from streams.dev.simulator.faults import Faults, Injected, Process
from streams.events.model import Event, Json, NewEvent, PayloadRef, Root
from streams.kafka.feed.crash_journal import MemoryJournalStorage
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.port import Record, Standing, TopicPartition
from streams.kafka.memory_mirror import write_event
from streams.kafka.names import event_topic
from streams.kafka.tables.memory import MemoryTables
from streams.kafka.tables.port import Changes as TableChanges
from streams.kafka.tables.port import PartitionLost
from streams.kafka.work.item import WorkItem
from streams.log.memory import MemoryEventStore
from streams.log.port import Frontier, Receipt
from streams.log.worker_incarnations import MemoryIncarnations
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import PayloadDescription, Scope
from streams.planner.table_rows import EXECUTIONS, FRAMES, STAGES
from streams.projector.memory import MemoryProjections
from streams.projector.port import Checkpoint
from streams.projector.rows import Changes

EVENTS = event_topic("execution")


class Mirror:
    """Writes events to their partition in log order, with a delay."""

    def __init__(self, topics: MemoryTopics, faults: Faults) -> None:
        self._topics, self._faults = topics, faults
        self._queue: asyncio.Queue[tuple[Event, bytes]] = asyncio.Queue()
        self._stored = self._written = 0
        self.written_at: dict[tuple[int, int], float] = {}
        """When each event, by execution and `seq`, was first readable."""

    def accept(self, event: Event, envelope: bytes) -> None:
        """Receive a stored event."""
        self._stored += 1
        self._queue.put_nowait((event, envelope))

    @property
    def behind(self) -> int:
        """Number of stored events that are not mirrored."""
        return self._stored - self._written

    async def run(self) -> None:
        """Mirror until cancelled; with pauses and repetitions."""
        while True:
            event, envelope = await self._queue.get()
            if self._faults.happens("mirror stopped", 0.003):
                await asyncio.sleep(self._faults.random.uniform(1.0, 20.0))
            await asyncio.sleep(self._faults.random.uniform(0.0, 0.02))
            self.written_at[event.root.id, event.seq] = asyncio.get_running_loop().time()
            for _ in range(1 + self._faults.happens("event twice", 0.01)):
                write_event(self._topics, event, envelope)
            self._written += 1


async def _nothing() -> None:
    """A placeholder query whose result is not used."""


class FaultyStore:
    """One process's access to the log."""

    def __init__(
        self,
        store: MemoryEventStore,
        faults: Faults,
        process: Process,
        poison: Collection[int] = (),
    ) -> None:
        self._store, self._faults, self._process = store, faults, process
        self._poison = poison

    async def append(self, batch: Sequence[NewEvent]) -> Receipt:
        """Append, unless the request or response is lost, or the events crash the process."""
        for event in batch:
            if event.root.id in self._poison and event.type != "execution.suspended":
                self._faults.counts[f"{self._process.name} poisoned"] += 1
                self._process.is_alive = False
                self._process.check()
        return await self._faults.write(self._process, lambda: self._store.append(batch))

    async def read_root(
        self, root: Root, *, after_seq: int = 0, through_seq: int | None = None
    ) -> AsyncIterator[Event]:
        """Read, unless the request fails."""
        await self._faults.read(self._process, _nothing)
        async for event in self._store.read_root(
            root, after_seq=after_seq, through_seq=through_seq
        ):
            yield event

    async def read_stream(
        self, root: Root, stream_id: str, *, after_version: int = 0
    ) -> AsyncIterator[Event]:
        """Read, unless the request fails."""
        await self._faults.read(self._process, _nothing)
        async for event in self._store.read_stream(root, stream_id, after_version=after_version):
            yield event

    async def read_log(
        self, after: Frontier, *, limit: int = 1000
    ) -> tuple[Sequence[Event], Frontier]:
        """Read, unless the request fails."""
        ask = lambda: self._store.read_log(after, limit=limit)  # noqa: E731
        return await self._faults.read(self._process, ask)

    def follow(self, after: Frontier) -> AsyncIterator[tuple[Event, Frontier]]:
        """Not used in simulations."""
        raise NotImplementedError

    async def open_roots(self, root_type: str) -> Mapping[int, int]:
        """Query, unless the request fails."""
        return await self._faults.read(self._process, lambda: self._store.open_roots(root_type))

    async def open_children(self, execution_id: int) -> Sequence[int]:
        """Query, unless the request fails."""
        ask = lambda: self._store.open_children(execution_id)  # noqa: E731
        return await self._faults.read(self._process, ask)

    async def endings(self, execution_ids: Sequence[int]) -> Mapping[int, Event]:
        """Query, unless the request fails."""
        ask = lambda: self._store.endings(execution_ids)  # noqa: E731
        return await self._faults.read(self._process, ask)

    async def suspended_executions(self, among: Collection[int] | None = None) -> Mapping[int, int]:
        """Query, unless the request fails."""
        ask = lambda: self._store.suspended_executions(among)  # noqa: E731
        return await self._faults.read(self._process, ask)


class FaultyIncarnations:
    """One process's access to worker incarnations."""

    def __init__(
        self,
        incarnations: MemoryIncarnations,
        faults: Faults,
        process: Process,
        registered_alive: set[str],
    ) -> None:
        self._incarnations, self._faults, self._process = incarnations, faults, process
        self._registered_alive = registered_alive

    async def current(self) -> Mapping[str, str]:
        """Query, unless the request fails."""
        if self._process.is_fenced:
            raise Injected("cut off")
        return await self._faults.read(self._process, self._incarnations.current)

    async def replace(self, previous: str | None, owner: str) -> bool:
        """Register, unless the request or response is lost."""

        async def send() -> bool:
            is_stored = await self._incarnations.replace(previous, owner)
            if is_stored:
                note = set.add if self._process.is_alive else set.discard
                note(self._registered_alive, owner)
            return is_stored

        return await self._faults.write(self._process, send)


class FencedFeed:
    """A feed that delivers nothing to a fenced or dead process."""

    def __init__(self, feed: MemoryFeed, process: Process) -> None:
        self._feed, self._process = feed, process

    async def next_batch(self) -> Mapping[TopicPartition, list[Record]]:
        """Return available records; none once fenced."""
        if not self._process.is_fenced:
            batch = await self._feed.next_batch()
            if not self._process.is_fenced:
                return batch
        await asyncio.sleep(1.0)
        return {}

    def acknowledge(self, records: Iterable[Record]) -> None:
        """Acknowledge records, unless fenced."""
        if self._process.is_alive and not self._process.is_fenced:
            self._feed.acknowledge(records)

    def standing(self) -> Standing:
        """Return the feed's standing; a fenced one has no lag."""
        return Standing(0, 0) if self._process.is_fenced else self._feed.standing()

    async def answers(self, *, within_s: float) -> bool:
        """Return whether the broker responds."""
        return await self._feed.answers(within_s=within_s)


class OutlivingJournal:
    """A journal that a dead process cannot change."""

    def __init__(self, storage: MemoryJournalStorage, process: Process) -> None:
        self._storage, self._process = storage, process

    def read(self) -> bytes:
        """Return the last content."""
        return self._storage.read()

    def write(self, content: bytes) -> None:
        """Store it, unless the process is dead."""
        if self._process.is_alive:
            self._storage.write(content)

    def close(self) -> None:
        """Do nothing."""


class FaultyPayloads:
    """One process's access to payloads."""

    def __init__(self, store: MemoryPayloadStore, faults: Faults, process: Process) -> None:
        self._store, self._faults, self._process = store, faults, process

    async def put(
        self, scope: Scope, data: bytes, **described: Unpack[PayloadDescription]
    ) -> PayloadRef:
        """Store, unless the request or response is lost."""
        return await self._faults.write(
            self._process,
            lambda: self._store.put(
                scope,
                data,
                **described,
            ),
        )

    async def get(self, ref: PayloadRef) -> bytes:
        """Fetch, unless the request fails."""
        return await self._faults.read(self._process, lambda: self._store.get(ref))

    async def store(
        self, scope: Scope, chunks: AsyncIterable[bytes], **described: Unpack[PayloadDescription]
    ) -> PayloadRef:
        """Buffer and store: all payloads are small."""
        return await self.put(scope, b"".join([chunk async for chunk in chunks]), **described)

    async def fetch(self, ref: PayloadRef) -> AsyncIterator[bytes]:
        """Yield the whole at once."""
        yield await self.get(ref)

    async def exists(self, ref: PayloadRef) -> bool:
        """Query, unless the request fails."""
        return await self._faults.read(self._process, lambda: self._store.exists(ref))

    async def delete(self, ref: PayloadRef) -> None:
        """Not used in simulations."""
        raise NotImplementedError


class FaultyQueue:
    """One process's access to the work topics: delayed, reordered, duplicated or lost."""

    def __init__(self, write: Callable[[WorkItem], None], faults: Faults, process: Process) -> None:
        self._write, self._faults, self._process = write, faults, process

    async def publish(self, items: Sequence[WorkItem]) -> None:
        """Publish each item, with faults."""
        await self._faults.write(self._process, lambda: self._publish(items))

    async def _publish(self, items: Sequence[WorkItem]) -> None:
        faults, loop = self._faults, asyncio.get_running_loop()
        for item in items:
            if faults.happens("work dropped", faults.drop):
                continue
            for _ in range(1 + faults.happens("work twice", faults.duplicate)):
                late = faults.happens("work reordered", faults.reorder)
                delay = faults.random.uniform(0.0, 1.0) if late else 0.0
                loop.call_later(delay, self._write, item)


class FencedTables:
    """The tables of simulated planners: only the newest process can write them."""

    def __init__(self, partitions: int) -> None:
        self.stored = MemoryTables(partitions)
        self.owner: Process | None = None


class FaultyTables:
    """One planner's access to its tables; they may be lost before it starts."""

    def __init__(self, tables: FencedTables, faults: Faults, process: Process) -> None:
        if faults.happens("tables lost", 0.1):
            tables.stored = MemoryTables(len(tables.stored.owned))
        elif faults.happens("one table lost", 0.1):
            tables.stored.clear(faults.random.choice((EXECUTIONS, STAGES, FRAMES)))
        tables.owner = process
        self._tables, self._faults, self._process = tables, faults, process

    @property
    def owned(self) -> frozenset[int]:
        """All partitions."""
        return self._tables.stored.owned

    async def write(self, partition: int, changes: TableChanges) -> None:
        """Write, unless the request or response is lost, or a later process owns the tables."""

        async def send() -> None:
            if self._tables.owner is not self._process:
                raise PartitionLost("a later planner owns the tables")
            await self._tables.stored.write(partition, changes)

        await self._faults.write(self._process, send)

    def read(self, partition: int, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of keys."""
        return self._tables.stored.read(partition, table, keys)

    def scan(self, partition: int, table: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield every key and value of a partition."""
        return self._tables.stored.scan(partition, table)


class FaultyProjections:
    """The projector's access to its tables."""

    def __init__(self, store: MemoryProjections, faults: Faults, process: Process) -> None:
        self._store, self._faults, self._process = store, faults, process

    async def save(self, changes: Changes, checkpoints: Sequence[Checkpoint]) -> None:
        """Save, unless the request or response is lost."""
        await self._faults.write(self._process, lambda: self._store.save(changes, checkpoints))


class Silence:
    """Dead letters and replies; a simulation should have none."""

    def __init__(self) -> None:
        self.received: list[tuple[object, ...]] = []

    async def set_aside(self, record: Record) -> None:
        """Store a record that crashed a process too often."""
        await self.put(record, "crashed a process too often", kind="simulated")

    async def put(self, record: object, reason: str, *, kind: str) -> None:
        """Store a dead letter."""
        self.received.append((record, reason, kind))

    async def send(
        self, reply_to: str, execution_id: int, body: Mapping[str, Json], **_: object
    ) -> None:
        """Store a reply."""
        self.received.append((reply_to, execution_id, body))
