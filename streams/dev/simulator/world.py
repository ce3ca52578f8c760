"""A simulated deployment: shared state and its processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any

from streams.dev.simulator.database import Database, FaultySaver, RowSource
from streams.dev.simulator.ending import end
from streams.dev.simulator.faults import Faults, Injected, Process
from streams.dev.simulator.playbooks import SimulatedPlaybooks
from streams.dev.simulator.ports import (
    EVENTS,
    FaultyIncarnations,
    FaultyPayloads,
    FaultyProjections,
    FaultyQueue,
    FaultyStore,
    FaultyTables,
    FencedFeed,
    FencedTables,
    Mirror,
    OutlivingJournal,
    Silence,
)
from streams.dev.simulator.virtual import VirtualClock, VirtualLoop
from streams.events.codec import Codec, event_schema
from streams.events.model import Event, NewEvent, Root
from streams.holds import Holds
from streams.ids import FixedWorkerId, Snowflakes
from streams.kafka.feed.crash_journal import MemoryJournalStorage
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.port import Record, TopicPartition
from streams.kafka.feed.process import RoleProcess
from streams.kafka.tables.write_behind import WriteBehind
from streams.kafka.work.item import WorkItem
from streams.log.memory import MemoryEventStore
from streams.log.worker_incarnations import MemoryIncarnations, Superseded, begin
from streams.payload.objects.memory import MemoryPayloadStore
from streams.planner import port as planner_port
from streams.planner.intake import Intake
from streams.planner.limits import Rules
from streams.planner.loop import Planner
from streams.planner.process import attach_planner
from streams.planner.tables import PlanTables
from streams.projector.loop import Projector
from streams.projector.memory import MemoryProjections
from streams.schema.registry import MemoryRegistry
from streams.worker import options as worker_options
from streams.worker.attempt.children import Children
from streams.worker.attempt.input import Documents
from streams.worker.await_executions import EndedExecutions
from streams.worker.loop import Worker
from streams.worker.process import attach_worker
from streams.worker.tools.noop import NoopTool
from streams.worker.tools.playbook import PlaybookTool

WORKERS = 2
CALLING_SEEDS = 5
"""Every fifth seed runs playbooks that call playbooks."""
_PRODUCER = "noetl://tenant/sim/org/sim/cluster/sim/workers/1"
_RULES = Rules(
    lease_margin=timedelta(seconds=1),
    republish_after=timedelta(seconds=10),
    max_attempts=50,
)


@dataclass(slots=True)
class World:
    """State that outlives a process, and the random generator."""

    loop: VirtualLoop
    random: Random
    faults: Faults
    topics: MemoryTopics
    store: MemoryEventStore
    mirror: Mirror
    payloads: MemoryPayloadStore
    projections: MemoryProjections
    database: Database
    silence: Silence
    codec: Codec
    ids: Snowflakes
    tables: FencedTables
    workers: MemoryIncarnations = field(default_factory=MemoryIncarnations)
    registered_alive: set[str] = field(default_factory=set)
    """Incarnations whose process was alive when their registration was stored."""
    journals: dict[str, MemoryJournalStorage] = field(default_factory=dict)
    rows_call: bool = False
    """Rows of loops call playbooks."""
    incarnation_numbers: Any = field(default_factory=lambda: count(1))
    poison: set[int] = field(default_factory=set)
    """Executions whose next decision crashes the planner, until the operator fixes it."""
    broken: list[BaseException] = field(default_factory=list)
    """Exceptions of processes that were not killed."""

    def clock(self) -> VirtualClock:
        """Return a machine's clock, with a small skew."""
        return VirtualClock(self.loop, self.random.uniform(-0.5, 0.5))

    def give(self, item: WorkItem) -> None:
        """Write an item to some worker's partition."""
        self.topics.write(_work_topic(item.entity_id % WORKERS), [item.encode()])

    def _role(self, process: Process) -> RoleProcess:
        """Return a process as in production, but without Faust and the watchdog thread."""

        def storage(name: str) -> OutlivingJournal:
            key = f"{process.name}/{name}"
            return OutlivingJournal(self.journals.setdefault(key, MemoryJournalStorage()), process)

        return RoleProcess(storage, watches_loop=False)

    def _incarnations(self, process: Process) -> FaultyIncarnations:
        return FaultyIncarnations(self.workers, self.faults, process, self.registered_alive)

    async def planner(self, process: Process) -> None:
        """Run a planner until it is killed."""
        clock, faults, role = self.clock(), self.faults, self._role(process)
        store = FaultyStore(self.store, faults, process, self.poison)
        tables = PlanTables(
            FaultyTables(self.tables, faults, process), lambda key: key % self.topics.partitions
        )
        planner = Planner(
            planner_port.PlannerPorts(
                store=store,
                families=store,
                payloads=FaultyPayloads(self.payloads, faults, process),
                queue=FaultyQueue(self.give, faults, process),
                playbooks=SimulatedPlaybooks(),
                replies=self.silence,
                clock=clock,
                tables=tables,
                incarnations=self._incarnations(process),
                journal=role.journal("executions"),
            ),
            _RULES,
        )

        async def assigned(partitions: frozenset[TopicPartition]) -> None:
            await intake.assigned(partitions)

        async def poison(record: Record, reason: str) -> None:
            raise AssertionError(f"set aside: {reason}")

        async def set_aside(record: Record) -> None:
            await intake.suspend(record)

        feed = MemoryFeed(
            self.topics, [EVENTS], group="planner", on_assigned=assigned, idle_s=1.0, max_records=7
        )
        writer = WriteBehind(FencedFeed(feed, process), tables.flush, holds=role.holds)
        intake = Intake(
            writer,
            planner,
            store,
            self.codec,
            clock,
            partition_of=lambda key: TopicPartition(EVENTS, key % self.topics.partitions),
            set_aside=poison,
        )
        attach_planner(role, feed, intake, writer=writer, set_aside=set_aside)
        await role.run(process.stop, _ready)

    async def worker(self, process: Process, number: int) -> None:
        """Run a worker until it is killed."""
        options = worker_options.Options(
            name=f"worker-{number}/{next(self.incarnation_numbers)}",
            lease_s=10,
            beat_s=3.0,
            grace_s=2.0,
        )
        incarnations = self._incarnations(process)
        await _register(incarnations, options.name)
        feed = MemoryFeed(self.topics, [_work_topic(number)], group="work", idle_s=1.0)
        fenced, role = FencedFeed(feed, process), self._role(process)
        worker = Worker(fenced, self._worker_ports(process, role.holds), options)
        attach_worker(
            role,
            fenced,
            worker,
            incarnations=incarnations,
            name=options.name,
            set_aside=self.silence.set_aside,
        )
        await role.run(process.stop, _ready)

    def _worker_ports(self, process: Process, holds: Holds) -> worker_options.WorkerPorts:
        faults, clock = self.faults, self.clock()
        payloads = FaultyPayloads(self.payloads, faults, process)
        store = FaultyStore(self.store, faults, process)
        children = Children(store, SimulatedPlaybooks(), payloads, clock)
        return worker_options.WorkerPorts(
            log=store,
            payloads=payloads,
            documents=Documents(payloads),
            playbooks=SimulatedPlaybooks(),
            tools={
                "noop": NoopTool(),
                "http": RowSource(faults, process),
                "postgres": FaultySaver(self.database, faults, process),
                "playbook": PlaybookTool(children, EndedExecutions(store, holds), payloads),
            },
            clock=clock,
            dead_letters=self.silence,
            holds=holds,
        )

    async def projector(self, process: Process) -> None:
        """Run a projector until it is killed."""
        feed = MemoryFeed(self.topics, [EVENTS], group="projector", idle_s=1.0, max_records=11)
        projector = Projector(
            feed,
            FaultyStore(self.store, self.faults, process),
            FaultyProjections(self.projections, self.faults, process),
            self.codec,
            shard_id="sim",
            topic_ids={EVENTS: "sim"},
        )
        # A separate journal: random kills would count against innocent records.
        role = RoleProcess(lambda _: MemoryJournalStorage(), watches_loop=False)
        role.attach(feed, projector.handle, set_aside=self.silence.set_aside)
        await role.run(process.stop, _ready)

    async def supervised(self, name: str, body: Callable[[Process], Awaitable[None]]) -> None:
        """Run a process, ending and restarting it randomly."""
        while True:
            process = Process(name)
            task = asyncio.ensure_future(body(process))
            stops_after_s = self.random.expovariate(1 / 12.0) if self.faults.is_on else 3_600.0
            done, _ = await asyncio.wait({task}, timeout=stops_after_s)
            if done and not task.cancelled() and (error := task.exception()) is not None:
                self._note_exit(error)
            await end(process, task, self.faults)
            await asyncio.sleep(self.random.uniform(0.1, 3.0))

    def _note_exit(self, error: BaseException) -> None:
        """Record why a process that was not killed has ended."""
        if isinstance(error, Superseded) and error.current in self.registered_alive:
            # An outlived process that read late registers after its successor: of two live
            # processes the later one wins. The registration of a dead one must never win.
            self.faults.counts["worker superseded"] += 1
        else:
            self.broken.append(error)

    async def start(self, execution: NewEvent) -> None:
        """Append the first event of an execution, as a trigger would."""
        await self.store.append([execution])

    async def events(self, execution_id: int) -> list[Event]:
        """Read an execution from the log."""
        root = Root("execution", execution_id)
        return [event async for event in self.store.read_root(root)]


def build(loop: VirtualLoop, seed: int) -> World:
    """Return the world of a seed, before any process runs."""
    random = Random(seed)  # noqa: S311 - a simulation must be repeatable
    faults, topics = Faults(random), MemoryTopics(partitions=2)
    codec = Codec(100001, event_schema(), MemoryRegistry())
    ids = Snowflakes(VirtualClock(loop), FixedWorkerId(1))
    mirror = Mirror(topics, faults)
    store = MemoryEventStore(
        codec=codec,
        next_id=ids.next,
        producer=_PRODUCER,
        clock=VirtualClock(loop),
        mirror=mirror.accept,
    )
    return World(
        loop=loop,
        random=random,
        faults=faults,
        topics=topics,
        store=store,
        mirror=mirror,
        payloads=MemoryPayloadStore(),
        projections=MemoryProjections(),
        database=Database(),
        silence=Silence(),
        codec=codec,
        ids=ids,
        tables=FencedTables(topics.partitions),
        rows_call=seed % CALLING_SEEDS == CALLING_SEEDS - 1,
    )


async def _register(incarnations: FaultyIncarnations, name: str) -> None:
    """Register a worker; retry if the log is down."""
    while True:
        try:
            return await begin(incarnations, name)
        except Injected:
            await asyncio.sleep(1.0)


def _ready() -> None:
    """Ignore readiness."""


def _work_topic(number: int) -> str:
    return f"noetl.work.default-{number}"
