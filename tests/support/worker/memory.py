"""A worker's surroundings in memory: log, payloads, a scripted tool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from streams.clock import SettableClock
from streams.events.model import Event, NewEvent, Root
from streams.kafka.work.item import WorkItem
from streams.log.memory import MemoryEventStore
from streams.payload.objects.memory import MemoryPayloadStore
from streams.playbook.draft import PlaybookDraft
from streams.playbook.expressions import compile_value
from streams.playbook.model import Do, FramePolicy, Loop, Mode, Playbook, Rule, Step, Task
from streams.playbook.result_policy import policy_of
from streams.playbook.spelling import Spelling
from streams.playbook.yaml_document import Document
from streams.worker.attempt.input import Documents
from streams.worker.errors import SaveFailed
from streams.worker.options import Options, WorkerPorts
from streams.worker.port import Call, Config, Fence, Outcome, Saved
from tests.support.events.examples import PRODUCER, codec

Answer = Callable[[Config, Call], Outcome]
CATALOG_ID, EXECUTION_ID, STAGE_ID, LOOP_ID = 43, 1001, 2001, 3001


def ok(data: Any = None, **more: Any) -> Outcome:
    return Outcome(status="success", data=data, **more)


def http_error(status: int) -> Outcome:
    error = {"kind": "http.status", "message": f"the server said {status}"}
    return Outcome(status="error", error=error, detail={"http": {"status": status}})


async def turns(count: int = 50) -> None:
    """Let every task that can go on do so, many times."""
    for _ in range(count):
        await asyncio.sleep(0)


class FakeTool:
    """Answers from a list first, then by `answer`; keeps every call."""

    def __init__(self, answer: Answer | None = None, first: Sequence[Outcome] = ()) -> None:
        self._answer, self._first = answer or (lambda config, call: ok(dict(config))), list(first)
        self.calls: list[tuple[Config, Call]] = []
        self.gate: asyncio.Event | None = None

    async def run(self, config: Config, call: Call) -> Outcome:
        self.calls.append((config, call))
        if self.gate is not None:
            await self.gate.wait()
        return self._first.pop(0) if self._first else self._answer(config, call)

    async def close(self) -> None:
        pass


class FakeSaver(FakeTool):
    """A database of rows and fences; refuses rows whose `value` is "bad"."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: list[tuple[str, Config]] = []
        self.fences: dict[Fence, Saved] = {}
        self.transactions = 0

    def target(self, config: Config) -> str:
        return str(config.get("dsn", "main"))

    async def find(self, config: Config, fences: Sequence[Fence]) -> Mapping[Fence, Saved]:
        return {fence: self.fences[fence] for fence in fences if fence in self.fences}

    async def save(
        self,
        batches: Sequence[tuple[Fence, Sequence[Config]]],
        saved: Saved,
        spelling: Spelling = Spelling.SPEC,
    ) -> Mapping[Fence, Saved]:
        found = {fence: self.fences[fence] for fence, _ in batches if fence in self.fences}
        fresh = [(fence, rows) for fence, rows in batches if fence not in found]
        for fence, rows in fresh:
            for number, row in enumerate(rows):
                if row.get("value") == "bad":
                    raise SaveFailed(fence.task, "the value is bad", rows=(number,))
        for fence, rows in fresh:
            self.saved += [(fence.task, row) for row in rows]
            self.fences[fence] = saved
        self.transactions += 1
        return found


class Dying:
    """The saver of a process that dies right after its save."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver
        self.run, self.target, self.find = saver.run, saver.target, saver.find

    async def save(
        self, batches: Any, saved: Saved, spelling: Spelling = Spelling.SPEC
    ) -> Mapping[Fence, Saved]:
        await self._saver.save(batches, saved, spelling)
        raise KeyboardInterrupt


class OnePlaybook:
    def __init__(self, step: Step) -> None:
        self._playbook = Playbook(
            name="test", path="tests/one", steps={step.name: step}, first=step.name
        )

    async def get(self, catalog_id: int, version: int) -> Playbook:
        return self._playbook


class NoDeadLetters:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    async def put(self, record: Any, reason: str, *, kind: str) -> None:
        self.reasons.append(reason)


def rule(when: str | None, do: str, **more: Any) -> Rule:
    for name in ("set_iter", "set_vars", "set_ctx"):
        if name in more:
            more[name] = compile_value(more[name])
    return Rule(when=None if when is None else compile_value(when), do=Do(do), **more)


def task(label: str, kind: str, config: Any = None, *rules: Rule, **more: Any) -> Task:
    if "spec" in more:
        document = Document()
        more["result"] = policy_of(PlaybookDraft(document), more["spec"], ())
        assert not document.problems
    return Task(label=label, kind=kind, config=compile_value(config or {}), rules=rules, **more)


def loop_step(*tasks: Task, iterator: str = "item", **more: Any) -> Step:
    loop = Loop(iterator=iterator, mode=Mode.PARALLEL, policy=FramePolicy(), **more)
    return Step(name="load", tasks=tasks, loop=loop)


@dataclass
class World:
    """Everything around one step; `worker()` options are a test's to change."""

    step: Step
    tools: dict[str, Any]
    clock: SettableClock = field(default_factory=SettableClock)
    payloads: MemoryPayloadStore = field(default_factory=MemoryPayloadStore)
    dead_letters: NoDeadLetters = field(default_factory=NoDeadLetters)
    log: MemoryEventStore = field(default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.log = self.log or MemoryEventStore(
            codec=codec(), next_id=count(5001).__next__, producer=PRODUCER, clock=self.clock
        )
        self.tools.setdefault("noop", FakeTool(lambda config, call: ok()))
        self.ports = WorkerPorts(
            log=self.log,
            payloads=self.payloads,
            documents=Documents(self.payloads),
            playbooks=OnePlaybook(self.step),
            tools=self.tools,
            clock=self.clock,
            dead_letters=self.dead_letters,
        )

    def options(self, **changes: Any) -> Options:
        return Options(**{"name": "worker-1", "beat_s": 20.0, **changes})

    async def frame(
        self, items: Sequence[Any] = (), *, frame_id: int = 4001, **changes: Any
    ) -> WorkItem:
        """Dispatch a frame and return its work item."""
        fields: dict[str, Any] = {
            "kind": "frame",
            "entity_id": frame_id,
            "stage_id": STAGE_ID,
            "loop_id": LOOP_ID,
            "cursor": {"kind": "list", "from": 0, "to": len(items)},
            "policy": {"size": 50, "row_concurrency": 4},
            "document": {"input": {}, "items": list(items)},
            **changes,
        }
        return await self._issued(fields)

    async def command(self, *, command_id: int = 6001, **changes: Any) -> WorkItem:
        """Issue a command and return its work item."""
        fields = {
            "kind": "command",
            "entity_id": command_id,
            "tool": "pipeline",
            "document": {"input": {}},
            **changes,
        }
        return await self._issued(fields)

    async def _issued(self, fields: dict[str, Any]) -> WorkItem:
        fixed: dict[str, Any] = {
            "tenant_id": "acme",
            "organization_id": "care",
            "execution_id": EXECUTION_ID,
            "attempt": 1,
            "version": 1,
            "step": self.step.name,
            "pool": "default",
            "catalog_id": CATALOG_ID,
            "catalog_version": 1,
        }
        item = WorkItem(**{**fixed, **fields})
        await self.say(item)
        return item

    async def say(self, item: WorkItem) -> None:
        """Append the planner's event that goes with an item."""
        if item.kind == "frame":
            kind, meta = "frame.dispatched", {"frame_id": str(item.entity_id), "ordinal": 0}
            meta |= {"stage_id": str(item.stage_id), "loop_id": str(item.loop_id)}
        else:
            kind, meta = "command.issued", {"command_id": str(item.entity_id)}
            meta |= {"tool": item.tool, "activation": 1}
        meta |= {"attempt": item.attempt, "pool": "default"}
        await self.append(kind, item, meta, key=f"{kind}/{item.entity_id}/{item.attempt}")

    async def append(self, kind: str, item: WorkItem, meta: Any, key: str, **more: Any) -> None:
        event = NewEvent(
            type=kind,
            root=Root("execution", EXECUTION_ID),
            tenant_id="acme",
            organization_id="care",
            idempotency_key=key,
            event_time=self.clock.now(),
            node_name=item.step,
            meta=meta,
            **more,
        )
        await self.log.append([event])

    async def expire(self, item: WorkItem, worker: str = "worker-1") -> WorkItem:
        """Let the planner take a frame away and dispatch it again; return the new item."""
        meta = {"frame_id": str(item.entity_id), "stage_id": str(item.stage_id)}
        meta |= {"attempt": item.attempt, "worker": worker, "reason": "expired"}
        await self.append("frame.lease_expired", item, meta, f"expired/{item.entity_id}")
        again = replace(item, attempt=item.attempt + 1, version=item.version + 3)
        await self.say(again)
        return again

    async def events(self, prefix: str = "") -> list[Event]:
        root = Root("execution", EXECUTION_ID)
        return [e async for e in self.log.read_root(root) if e.type.startswith(prefix)]

    async def last(self) -> Event:
        return (await self.events())[-1]
