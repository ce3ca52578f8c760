"""A deployment in one process: a planner and a worker on ports in memory, with the real tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from streams.clock import Clock, SystemClock
from streams.events.codec import Codec, event_schema
from streams.events.model import Event
from streams.ids import FixedWorkerId, Snowflakes
from streams.kafka.dead_letters import MemoryDeadLetters
from streams.kafka.feed.crash_journal import MemoryJournalStorage
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.port import Record, TopicPartition
from streams.kafka.feed.process import RoleProcess
from streams.kafka.memory_mirror import write_event
from streams.kafka.names import event_topic, work_topic
from streams.kafka.replies import MemoryReplies
from streams.kafka.work.memory import MemoryWorkQueue
from streams.log.memory import MemoryEventStore
from streams.log.worker_incarnations import MemoryIncarnations, begin
from streams.payload.objects.memory import MemoryPayloadStore
from streams.planner.intake import Intake
from streams.planner.limits import Rules
from streams.planner.loop import Planner
from streams.planner.port import PlannerPorts
from streams.planner.process import attach_planner
from streams.results.lookup import Results
from streams.schema.registry import MemoryRegistry
from streams.trial.credentials import GivenCredentials, trial_credentials
from streams.trial.mocks import KIND, MockedPlaybooks, MockTool, StepMock, planned_mocks
from streams.trial.playbooks import FilePlaybooks
from streams.worker.attempt.children import Children
from streams.worker.attempt.input import Documents
from streams.worker.await_executions import EndedExecutions
from streams.worker.loop import Worker
from streams.worker.options import Options, WorkerPorts
from streams.worker.port import Tool
from streams.worker.process import attach_worker
from streams.worker.tools.registry import ToolEnvironment, open_tools

NAME = "try"
_WORKER = f"{NAME}/1"
_PRODUCER = "noetl://tenant/default/org/default/cluster/try/workers/1"
_EVENTS, _WORK = event_topic("execution"), work_topic("default")
_CODEC_ID = 100001
_RETRIES = Rules(max_attempts=5)
Watch = Callable[[Event], None]
"""Called with each event as it is appended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """What a trial run may use besides the playbook."""

    mocks: tuple[StepMock, ...] = ()
    credentials: GivenCredentials = field(default_factory=dict)
    sink_folder: Path = Path(".streams/sinks")
    bootstrap: str = "127.0.0.1:9092"
    """Kafka's address, for tasks of kind `kafka`."""
    slots: int = 8


class Deployment:
    """The state that planner and worker share; `watch` is called with each event."""

    def __init__(self, playbooks: FilePlaybooks, options: TrialOptions, watch: Watch) -> None:
        self._options, self._watch = options, watch
        self.clock: Clock = SystemClock()
        self.ids = Snowflakes(self.clock, FixedWorkerId(1))
        self._topics = MemoryTopics()
        self._codec = Codec(_CODEC_ID, event_schema(), MemoryRegistry())
        self.store = MemoryEventStore(
            codec=self._codec,
            next_id=self.ids.next,
            producer=_PRODUCER,
            clock=self.clock,
            mirror=self._mirror,
        )
        self.payloads = MemoryPayloadStore()
        self._incarnations, self._dead_letters = MemoryIncarnations(), MemoryDeadLetters()
        main = playbooks.main
        self._planned = MockedPlaybooks(playbooks, planned_mocks(main, options.mocks))
        self._worked = MockedPlaybooks(playbooks, options.mocks)

    @asynccontextmanager
    async def tools(self) -> AsyncIterator[dict[str, Tool]]:
        """Open the tools; they connect on first use."""
        ended = EndedExecutions(self.store)
        environment = ToolEnvironment(
            credentials=trial_credentials(self._options.credentials, self.clock),
            payloads=self.payloads,
            deployment=NAME,
            bootstrap=self._options.bootstrap,
            children=Children(self.store, self._worked, self.payloads, self.clock),
            ended_executions=ended,
            results=Results(self.store, self.clock),
            sink_folder=self._options.sink_folder,
        )
        try:
            async with open_tools(environment) as tools:
                yield {**tools, KIND: MockTool(self._options.mocks)}
        finally:
            await ended.close()

    async def run_planner(self, stop: asyncio.Event) -> None:
        """Plan until `stop` is set."""
        process = _process()
        ports = PlannerPorts(
            store=self.store,
            families=self.store,
            payloads=self.payloads,
            queue=MemoryWorkQueue(self._write_work),
            playbooks=self._planned,
            replies=MemoryReplies(),
            clock=self.clock,
            incarnations=self._incarnations,
        )

        async def set_aside(record: Record, reason: str = "it ended the planner") -> None:
            await self._dead_letters.put(record, reason, kind="planner")

        feed = MemoryFeed(self._topics, [_EVENTS], group="planner", idle_s=1.0)
        intake = Intake(
            feed,
            Planner(ports, _RETRIES),
            self.store,
            self._codec,
            self.clock,
            partition_of=lambda _: TopicPartition(_EVENTS, 0),
            set_aside=set_aside,
        )
        attach_planner(process, feed, intake, set_aside=set_aside)
        await process.run(stop, _ready)

    async def run_worker(self, stop: asyncio.Event, tools: dict[str, Tool]) -> None:
        """Work until `stop` is set."""
        await begin(self._incarnations, _WORKER)
        process = _process()
        ports = WorkerPorts(
            log=self.store,
            payloads=self.payloads,
            documents=Documents(self.payloads),
            playbooks=self._worked,
            tools=tools,
            clock=self.clock,
            dead_letters=self._dead_letters,
            holds=process.holds,
        )

        async def set_aside(record: Record) -> None:
            await self._dead_letters.put(record, "it ended the worker", kind="worker")

        feed = MemoryFeed(self._topics, [_WORK], group="worker", idle_s=1.0)
        options = Options(name=_WORKER, deployment=NAME, slots=self._options.slots, grace_s=1.0)
        worker = Worker(feed, ports, options)
        attach_worker(
            process,
            feed,
            worker,
            incarnations=self._incarnations,
            name=_WORKER,
            set_aside=set_aside,
        )
        await process.run(stop, _ready)

    def _mirror(self, event: Event, envelope: bytes) -> None:
        write_event(self._topics, event, envelope)
        self._watch(event)

    def _write_work(self, topic: str, key: bytes, value: bytes) -> None:
        """Write an item of any pool to the topic of the only worker."""
        self._topics.write(_WORK, [value], key=key)


def _process() -> RoleProcess:
    return RoleProcess(lambda _: MemoryJournalStorage(), watches_loop=False)


def _ready() -> None:
    """Ignore readiness."""
