"""A planner on a log in memory, and a worker that does what the test tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from streams.clock import Clock, SettableClock
from streams.events.model import Event, NewEvent, Root
from streams.execution.evolve import evolve
from streams.execution.plan import Plan
from streams.ids import FixedWorkerId, Snowflakes
from streams.kafka.feed.crash_journal import CrashJournal, MemoryJournalStorage
from streams.kafka.work.item import WorkItem
from streams.kafka.work.memory import MemoryWorkQueue
from streams.log.memory import MemoryEventStore
from streams.log.port import Frontier
from streams.log.worker_incarnations import MemoryIncarnations
from streams.payload.objects.memory import MemoryPayloadStore
from streams.planner.limits import Rules
from streams.planner.loop import Planner
from streams.planner.port import NoTables, PlannerPorts, Tables
from streams.playbook.errors import BadPlaybook
from streams.playbook.expressions import compile_value
from streams.playbook.model import Arc, FramePolicy, Loop, Mode, Playbook, Step, Task
from tests.support.events.examples import PRODUCER, codec

START = datetime(2026, 5, 16, 12, 0, tzinfo=UTC)


def playbook(*steps: Step, **fields: Any) -> Playbook:
    return Playbook(
        name="test",
        path="tests/test",
        steps={step.name: step for step in steps},
        first=steps[0].name,
        **fields,
    )


def step(name: str, *arcs: Arc | str, tool: str | None = "noop", **fields: Any) -> Step:
    tasks = () if tool is None else (Task(label=name, kind=tool, config=compile_value({})),)
    ways = tuple(Arc(step=arc) if isinstance(arc, str) else arc for arc in arcs)
    return Step(name=name, tasks=tasks, arcs=ways, **fields)


def loop(items: Any, **fields: Any) -> Loop:
    policy = fields.pop("policy", FramePolicy(size=10))
    fields.setdefault("mode", Mode.PARALLEL)
    return Loop(iterator="row", source=compile_value(items), policy=policy, **fields)


class _Playbooks:
    def __init__(self, playbook: Playbook) -> None:
        self.all = {7: playbook}

    async def get(self, catalog_id: int, version: int) -> Playbook:
        return self.all[catalog_id]

    async def resolve(
        self, tenant_id: str, organization_id: str, path: str, version: int | None = None
    ) -> tuple[int, int]:
        for catalog_id, known in self.all.items():
            if known.path == path:
                return catalog_id, 1
        raise BadPlaybook(f"no playbook {path}", [])


@dataclass
class _Replies:
    sent: list[tuple[str, int, Any]] = field(default_factory=list)

    async def send(
        self,
        reply_to: str,
        execution_id: int,
        body: dict[str, Any],
        *,
        maybe_sent: bool = False,
        since: datetime | None = None,
    ) -> None:
        self.sent.append((reply_to, execution_id, body))


class World:
    """One execution's surroundings; nothing happens between two calls."""

    def __init__(self, playbook: Playbook, **rules: Any) -> None:
        self.clock = SettableClock(START)
        ids = Snowflakes(self.clock, FixedWorkerId(1))
        self.store = MemoryEventStore(
            codec=codec(), next_id=ids.next, producer=PRODUCER, clock=self.clock
        )
        self.queue, self.payloads = MemoryWorkQueue(), MemoryPayloadStore()
        self.playbooks, self.replies = _Playbooks(playbook), _Replies()
        self.rules = Rules(**rules)
        self.incarnations, self.journal = MemoryIncarnations(), MemoryJournalStorage()
        self.tables: Tables = NoTables()
        self.planner = self.new_planner()
        self.frontier = Frontier()
        self.execution_id = ids.next()

    def new_planner(self, clock: Clock | None = None) -> Planner:
        """Return a planner that knows nothing yet, as after a crash; its clock may differ."""
        return Planner(
            PlannerPorts(
                store=self.store,
                families=self.store,
                payloads=self.payloads,
                queue=self.queue,
                playbooks=self.playbooks,
                replies=self.replies,
                clock=clock or self.clock,
                tables=self.tables,
                incarnations=self.incarnations,
                journal=CrashJournal(self.journal),
            ),
            self.rules,
            name="planner-0",
        )

    async def start(self, workload: dict[str, Any] | None = None, **meta: Any) -> None:
        await self.append(
            "playbook.initialized",
            meta={"path": "tests/test", "version": 1, **meta},
            context={"workload": workload or {}},
            catalog_id=7,
        )
        await self.pump()

    async def reborn(self) -> None:
        """Let a new planner take over, as after a kill, and read the topic from its end."""
        self.planner = self.new_planner()
        ids = await self.store.open_roots("execution")
        await self.planner.adopt(ids, self.store.suspended_executions)
        await self.pump()

    async def suspend(self, reason: str = "a pause") -> None:
        await self.append("execution.suspended", meta={"by": "ana", "reason": reason})
        await self.pump()

    async def resume(self) -> None:
        await self.append("execution.resumed", meta={"by": "ana"})
        await self.pump()

    async def append(self, type: str, **fields: Any) -> None:
        event = NewEvent(
            type=type,
            root=Root("execution", self.execution_id),
            tenant_id="acme",
            organization_id="care",
            idempotency_key=f"{type}/{fields.pop('key', len(await self.events()))}",
            event_time=self.clock.now(),
            **fields,
        )
        await self.store.append([event])

    async def pump(self) -> None:
        """Mirror what is new to the planner until nothing new comes of it."""
        while True:
            events, self.frontier = await self.store.read_log(self.frontier)
            if not events:
                return
            await self.planner.absorb(list(events))

    async def events(self, execution_id: int | None = None) -> list[Event]:
        root = Root("execution", execution_id or self.execution_id)
        return [event async for event in self.store.read_root(root)]

    async def types(self) -> list[str]:
        return [event.type for event in await self.events()]

    async def plan(self, execution_id: int | None = None) -> Plan:
        """Fold the log from its beginning."""
        plan: Plan | None = None
        for event in await self.events(execution_id):
            plan = evolve(plan, event)
        assert plan is not None
        return plan

    def take(self) -> list[WorkItem]:
        """Return the items published since the last time."""
        items, self.queue.published[:] = list(self.queue.published), []
        return items

    async def claim(self, item: WorkItem, worker: str = "w1") -> None:
        kind = item.kind
        ids = {f"{kind}_id": str(item.entity_id)}
        if kind == "frame":
            ids["stage_id"] = str(item.stage_id)
        await self.append(
            f"{kind}.claimed",
            key=f"{item.entity_id}/{item.attempt}/{worker}",
            node_name=item.step,
            meta={**ids, "attempt": item.attempt, "worker": worker, "lease_seconds": 60},
            expected_version=item.version,
        )

    async def complete(self, item: WorkItem, data: Any = None, **result: Any) -> None:
        """Run a command to its good end."""
        await self.claim(item)
        await self.append(
            "command.completed",
            key=str(item.entity_id),
            node_name=item.step,
            status="success",
            meta={"command_id": str(item.entity_id), "attempt": item.attempt, "worker": "w1"},
            result={"status": "success", "data": data, "meta": {}, **result},
        )
        await self.pump()

    async def fail(self, item: WorkItem, error: str) -> None:
        """Run a command to a bad end."""
        await self.claim(item)
        await self.append(
            "command.failed",
            key=str(item.entity_id),
            node_name=item.step,
            status="error",
            error=error,
            meta={"command_id": str(item.entity_id), "attempt": item.attempt, "worker": "w1"},
            result={"status": "error", "error": {"kind": "test", "message": error}, "meta": {}},
        )
        await self.pump()

    async def commit(
        self, item: WorkItem, rows: int | None = None, failed: int = 0, **fields: Any
    ) -> None:
        """Run a frame to its commit."""
        await self.claim(item)
        assert item.cursor is not None
        counted = rows if rows is not None else item.cursor["to"] - item.cursor["from"]
        errors = [{"row": 0, "item": "x", "task": "save", "error": "no"}] * min(failed, 10)
        cursor = fields.pop("cursor", item.cursor)
        await self.append(
            "frame.committed",
            key=f"{item.entity_id}/{item.attempt}",
            node_name=item.step,
            status="partial" if failed else "success",
            meta={
                "frame_id": str(item.entity_id),
                "stage_id": str(item.stage_id),
                "loop_id": str(item.loop_id),
                "attempt": item.attempt,
                "worker": "w1",
                "rows": counted,
                "failed_rows": failed,
                "continues": fields.pop("continues", False),
            },
            context={"cursor": cursor},
            payload_ref=fields.pop("payload_ref", None),
            result={"errors": errors, "retries": 0, **fields},
        )
        await self.pump()

    async def checkpoint(
        self, item: WorkItem, rows: int, ref: Any, failed: int = 0, **result: Any
    ) -> None:
        """Report the first rows of a list frame as done; the item was claimed."""
        cursor = {**(item.cursor or {}), "from": (item.cursor or {})["from"] + rows}
        ids = {"frame_id": str(item.entity_id), "stage_id": str(item.stage_id)}
        counts = {"loop_id": str(item.loop_id), "rows": rows, "failed_rows": failed}
        await self.append(
            "frame.heartbeat",
            node_name=item.step,
            meta={**ids, "attempt": item.attempt, "worker": "w1", "lease_seconds": 60, **counts},
            context={"cursor": cursor},
            payload_ref=ref,
            result=result or None,
        )
        await self.pump()

    async def after(self, seconds: float) -> None:
        """Let time pass, and the planner notice."""
        self.clock.advance(seconds)
        await self.planner.tick()
        await self.pump()
