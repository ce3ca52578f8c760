"""Simulation of one seed: executions run under faults, then all invariants are checked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streams.dev.simulator.faults import Process
from streams.dev.simulator.operator import operate
from streams.dev.simulator.playbooks import CALLING, STARTED, simulated
from streams.dev.simulator.ports import EVENTS
from streams.dev.simulator.virtual import EPOCH, Stuck, VirtualClock, VirtualLoop, run
from streams.dev.simulator.world import WORKERS, World, build
from streams.events.catalogue import catalogue
from streams.events.model import Event, Json, NewEvent, Root
from streams.events.types import (
    ExecutionResumed,
    ExecutionSuspended,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    PlaybookInitialized,
    typed,
)
from streams.execution.evolve import evolve
from streams.execution.plan import COMPLETED, FAILED, PARTIAL, TERMINAL, Plan
from streams.projector.heads import ScannedRootHeads
from streams.projector.memory import MemoryProjections
from streams.projector.rebuild import rebuild

FAULT_PHASE_S = 90.0
END_LIMIT_S = 400.0
"""Limit for executions to end after the fault phase."""
_LEARNT = timedelta(seconds=1)
"""Limit for a planner to read a suspension."""
_ON_THEIR_WAY = 2
"""Appends of a planner and its successor that may be in flight and arrive later."""
_POISONED = 0.08
"""Probability that an execution crashes the planner until an operator fixes it."""
PROJECTION_LIMIT_S = 120.0
"""Limit for the projection to catch up after that."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The problem of a seed."""

    seed: int
    problem: str


@dataclass(slots=True)
class Summary:
    """Totals of all seeds."""

    seeds: int = 0
    steps: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[Broken] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Run:
    """One simulated execution and its expected outcome."""

    execution_id: int
    shape: int
    rows: int
    bad: frozenset[int]

    @property
    def expected(self) -> str:
        if not self.bad:
            return COMPLETED
        return PARTIAL if simulated()[self.shape].steps["each"].on_error == "continue" else FAILED


def simulate(
    seeds: range,
    *,
    plant: Callable[[], AbstractContextManager[object]] = nullcontext,
    progress: Callable[[Summary], None] = lambda _: None,
    stop_at_first: bool = False,
) -> Summary:
    """Run all seeds, with a planted bug if given."""
    summary = Summary()
    with plant():
        for seed in seeds:
            problem = _one(seed, summary)
            summary.seeds += 1
            if problem is not None:
                summary.failures.append(Broken(seed, problem))
            progress(summary)
            if problem is not None and stop_at_first:
                break
    return summary


def _one(seed: int, summary: Summary) -> str | None:
    """Run one seed and return its problem, if any."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    world = build(loop, seed)
    try:
        problem = run(loop, _story(world))
    except Stuck as stuck:
        problem = f"stuck: {stuck}"
    finally:
        asyncio.set_event_loop(None)
    summary.faults.update(world.faults.counts)
    summary.steps += sum(len(log) for log in world.topics.logs.values())
    return problem


async def _story(world: World) -> str | None:
    processes = [
        asyncio.ensure_future(world.mirror.run()),
        asyncio.ensure_future(operate(world)),
        asyncio.ensure_future(world.supervised("planner", world.planner)),
        asyncio.ensure_future(world.supervised("projector", world.projector)),
        *(
            asyncio.ensure_future(world.supervised("worker", _numbered(world, number)))
            for number in range(WORKERS)
        ),
    ]
    runs = [run async for run in _start_all(world)]
    problem = await _until_ended(world, runs)
    if problem is None:
        world.faults.is_on = False
        problem = await _until_shown(world) or await _judge(world, runs)
    for task in processes:
        task.cancel()
    await asyncio.gather(*processes, return_exceptions=True)
    return problem


def _numbered(world: World, number: int) -> Callable[[Process], Awaitable[None]]:
    return lambda process: world.worker(process, number)


async def _start_all(world: World) -> AsyncIterator[_Run]:
    for _ in range(world.random.randint(1, 3)):
        yield await _start(world)
        await asyncio.sleep(world.random.uniform(0.0, 5.0))


async def _start(world: World) -> _Run:
    random = world.random
    shape, rows = random.randrange(STARTED), random.randint(0, 24)
    is_bad = random.random() < 0.2
    bad = frozenset(n for n in range(rows) if is_bad and random.random() < 0.1)
    execution_id = world.ids.next()
    if random.random() < _POISONED:
        world.poison.add(execution_id)
    if world.rows_call:
        shape, rows = CALLING, rows % 7
        bad = frozenset(n for n in bad if n < rows)
    items: list[Json] = [{"n": n, "bad": n in bad} for n in range(rows)]
    started = PlaybookInitialized(path=f"simulated/{shape}", version=1, workload={"rows": items})
    await world.start(
        NewEvent(
            root=Root("execution", execution_id),
            tenant_id="sim",
            organization_id="sim",
            idempotency_key="playbook.initialized/1",
            event_time=VirtualClock(world.loop).now(),
            catalog_id=shape + 1,
            **started.columns(),
        )
    )
    return _Run(execution_id, shape, rows, bad)


async def _until_ended(world: World, runs: list[_Run]) -> str | None:
    """Wait for every execution; return the first problem."""
    while True:
        await asyncio.sleep(1.0)
        now = world.loop.time()
        if now > FAULT_PHASE_S:
            world.faults.is_on = False
        if world.broken:
            error = world.broken[0]
            return f"a process failed at {now:.1f} s: {type(error).__name__}: {error}"
        if world.database.doubled:
            return f"{world.database.doubled[0]} (seen at {now:.1f} s)"
        open_ids = await world.store.open_roots("execution")
        if not open_ids:
            return None
        if now > FAULT_PHASE_S + END_LIMIT_S:
            return f"execution {open_ids[0]} has not ended after {now:.0f} s"


async def _until_shown(world: World) -> str | None:
    """Wait until mirror and projector have caught up."""
    end = world.loop.time() + PROJECTION_LIMIT_S
    while world.mirror.behind or world.topics.lag("projector", EVENTS):
        if world.loop.time() > end:
            return f"the projector is behind {PROJECTION_LIMIT_S:.0f} s after everything ended"
        await asyncio.sleep(1.0)
    return None


async def _judge(world: World, runs: list[_Run]) -> str | None:
    for one in runs:
        for problem in [*await _wrong_in_log(world, one), *_wrong_in_rows(world, one)]:
            return f"execution {one.execution_id} (shape {one.shape}): {problem}"
    return await _wrong_in_projection(world)


async def _wrong_in_log(world: World, run: _Run) -> list[str]:
    plan: Plan | None = None
    ends: Counter[int] = Counter()
    dispatched: set[int] = set()
    ended: set[int] = set()
    problems: list[str] = []
    events = await world.events(run.execution_id)
    problems += _wrong_in_suspensions(world, events)
    for event in events:
        was = plan.status if plan else None
        plan = evolve(plan, event)
        if was in TERMINAL and plan.status != was:
            problems.append(f"went from {was} to {plan.status}")
        match typed(event):
            case FrameDispatched(frame_id=frame_id):
                dispatched.add(frame_id)
            case FrameCommitted(frame_id=frame_id) | FrameAbandoned(frame_id=frame_id):
                ended.add(frame_id)
                ends[frame_id] += 1
    assert plan is not None
    problems += [f"frame {frame} was ended {n} times" for frame, n in ends.items() if n > 1]
    problems += [f"frame {frame} never ended" for frame in dispatched - ended]
    if plan.status != run.expected:
        problems.append(f"ended {plan.status}, not {run.expected}: {plan.error}")
    if plan.status in (COMPLETED, PARTIAL):
        loop = plan.loops["each"]
        counted = (loop["done"], loop["failed"])
        if counted != (run.rows - len(run.bad), len(run.bad)):
            problems.append(f"counted {counted} rows of {run.rows} with {len(run.bad)} bad")
    return problems


def _wrong_in_suspensions(world: World, events: list[Event]) -> Iterator[str]:
    """Yield decisions that a planner made after it read a suspension."""
    suspended_at: datetime | None = None
    late: set[datetime] = set()
    for event in events:
        if event.type == ExecutionSuspended.TYPE:
            suspended_at = EPOCH + timedelta(
                seconds=world.mirror.written_at[event.root.id, event.seq]
            )
            late = set()
        elif event.type == ExecutionResumed.TYPE:
            suspended_at = None
        elif suspended_at is not None and catalogue().types[event.type].writers[0] == "planner":
            if event.ingest_time - suspended_at > _LEARNT:
                late.add(event.ingest_time)
            if len(late) > _ON_THEIR_WAY:
                since = event.ingest_time - suspended_at
                yield f"{event.type} was decided {since} after a suspension"
                return


def _wrong_in_rows(world: World, run: _Run) -> Iterator[str]:
    saved = {
        row: n for (key, row), n in world.database.rows.items() if key == str(run.execution_id)
    }
    for row, times in saved.items():
        if times > 1:
            yield f"row {row} was saved {times} times"
        if row in run.bad:
            yield f"row {row} was saved though it failed"
    if run.expected != FAILED:
        missing = set(range(run.rows)) - run.bad - saved.keys()
        if missing:
            yield f"rows {sorted(missing)} are missing"


async def _wrong_in_projection(world: World) -> str | None:
    fresh = MemoryProjections()
    await rebuild(ScannedRootHeads(world.store), world.store, fresh)
    for key, row in fresh.rows.items():
        live = world.projections.rows.get(key)
        if live != row:
            return f"projection {key}: live {live} differs from a replay: {row}"
    return None
