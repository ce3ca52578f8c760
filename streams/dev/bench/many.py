"""Benchmark of one planner with many open executions that wait.

Its memory, and the latency of one-step playbooks, without open executions and with all of
them; then its restart after kill -9, with its tables on disk and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from streams.dev.bench.executions import open_executions
from streams.dev.bench.idle_roles import until_idle
from streams.dev.bench.latency import PATH as ONE_STEP
from streams.dev.bench.latency import bench_latency
from streams.dev.bench.planner_memory import PlannerMemory
from streams.dev.bench.planner_restarts import PlannerRestarts, Restart
from streams.dev.bench.playbook_setup import register
from streams.dev.bench.report import BenchReport, Figure, per_second
from streams.dev.bench.service_kills import NoSuchService, ServiceKills
from streams.dev.bench.waiting_executions import PLAYBOOK, WaitingExecutions
from streams.errors import Refused
from streams.settings import Settings

PLANNER, SECOND_PLANNER = "planner-0", "planner-1"
BUSY = (PLANNER, "trigger-0", "projector-0", "worker-0")
TRIGGERS = 50
"""One-step playbooks for each latency."""
Say = Callable[[str], None]


class SeveralPlanners(Refused):
    """The stack divides its executions among planners."""

    def __init__(self) -> None:
        super().__init__("the stack has several planners; this bench measures one: use another")


@dataclass(slots=True)
class _Found:
    """What was measured."""

    empty_p50_ms: float = 0.0
    base_mb: float = 0.0
    start_s: float = 0.0
    settle_s: float = 0.0
    many_p50_ms: float = 0.0
    many_mb: float = 0.0
    restarted_mb: float = 0.0
    opened: int = 0
    stored: list[int] = field(default_factory=list)
    """Executions in the tables on disk: before the restarts, and after each."""
    restarts: list[Restart] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class ManyBench:
    """Measures one planner; `cancel`: end the executions afterwards."""

    def __init__(
        self, settings: Settings, data: Path, *, triggers: int = TRIGGERS, cancel: bool, say: Say
    ) -> None:
        self._settings, self._data, self._say = settings, data, say
        self._triggers, self._cancel = triggers, cancel
        self._services = ServiceKills(data)
        self._memory = PlannerMemory(self._services, PLANNER)
        self._found = _Found()

    async def measure(self, executions: int) -> BenchReport:
        """Measure without open executions, then with this many.

        Raises:
            NoSuchService: there is no embedded stack, or it has no planner.
            SeveralPlanners: it has more than one.
        """
        self._check()
        found = self._found
        await register(self._settings, PLAYBOOK)
        found.empty_p50_ms = await self._latency()
        found.base_mb = self._memory.now_mb()
        self._say(f"empty: {found.empty_p50_ms} ms, {found.base_mb} MB")
        async with open_executions(self._settings) as started:
            waiting = WaitingExecutions(self._settings, started)
            async with self._memory.watched():
                await self._fill(waiting, executions)
            restarts = PlannerRestarts(self._data, PLANNER, started, ONE_STEP)
            for wipe in (False, True):
                await self._restart(restarts, wipe=wipe)
                found.stored.append(await waiting.count_stored(self._data, PLANNER))
            found.restarted_mb = self._memory.now_mb()
            if self._cancel:
                self._say("cancelling the waiting executions")
                await waiting.cancel()
        faults = (*found.faults, *_faults(found, executions))
        return BenchReport(_figures(found, executions, self._memory.peak_mb), faults)

    async def _fill(self, waiting: WaitingExecutions, executions: int) -> None:
        """Start the executions, wait until all roles are idle, and measure with them."""
        found = self._found
        found.start_s = await waiting.start(executions, self._say)
        self._say(f"{executions} wait after {found.start_s:.0f} s; waiting for idle roles")
        found.settle_s = await until_idle(self._data, BUSY)
        found.many_mb = self._memory.now_mb()
        found.many_p50_ms = await self._latency()
        found.opened = await waiting.count_open()
        found.stored.append(await waiting.count_stored(self._data, PLANNER))
        self._say(f"{found.opened} open: {found.many_p50_ms} ms, {found.many_mb} MB")

    async def _latency(self) -> float:
        """Return the median latency of one-step playbooks."""
        report = await bench_latency(self._settings, executions=self._triggers, say=self._say)
        self._found.faults.extend(report.faults)
        p50_ms = report.figures["p50_ms"]
        assert isinstance(p50_ms, float)
        return p50_ms

    async def _restart(self, restarts: PlannerRestarts, *, wipe: bool) -> None:
        done = await restarts.restart(wipe=wipe)
        self._found.restarts.append(done)
        disk = "without" if wipe else "with"
        self._say(f"restarted {disk} its disk: {done.handled_s:.1f} s, ready {done.ready_s:.1f} s")

    def _check(self) -> None:
        self._services.service(PLANNER)
        try:
            self._services.service(SECOND_PLANNER)
        except NoSuchService:
            return
        raise SeveralPlanners


def _figures(found: _Found, executions: int, peak_mb: float) -> dict[str, Figure]:
    kept, wiped = found.restarts
    return {
        "executions": executions,
        "open": found.opened,
        "stored": found.stored[0],
        "started_per_s": per_second(executions, found.start_s),
        "settle_s": round(found.settle_s, 1),
        "empty_trigger_p50_ms": found.empty_p50_ms,
        "trigger_p50_ms": found.many_p50_ms,
        "base_memory_mb": found.base_mb,
        "memory_mb": found.many_mb,
        "peak_memory_mb": peak_mb,
        "memory_kb_each": round(1024 * (found.many_mb - found.base_mb) / executions, 2),
        "restarted_memory_mb": found.restarted_mb,
        "ready_s": round(kept.ready_s, 1),
        "restart_s": round(kept.handled_s, 1),
        "restart_cpu_s": round(kept.cpu_s, 1),
        "restart_from_log": kept.from_log,
        "ready_wiped_s": round(wiped.ready_s, 1),
        "restart_wiped_s": round(wiped.handled_s, 1),
        "restart_wiped_cpu_s": round(wiped.cpu_s, 1),
        "restart_wiped_from_log": wiped.from_log,
    }


def _faults(found: _Found, executions: int) -> Iterator[str]:
    if found.opened != executions:
        yield f"{found.opened} of {executions} executions are open and wait"
    for stored, when in zip(found.stored, ("", " after a restart", " after a wipe"), strict=True):
        if stored != executions:
            yield f"the tables have {stored} of {executions} executions{when}"
    for restart in found.restarts:
        if restart.taken_over < executions:
            yield f"the planner took over {restart.taken_over} of {executions} executions"
