"""One call of one task: render its configuration, run its tool, conceal secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeGuard

from streams.clock import Clock
from streams.errors import Refused, Unavailable
from streams.events.model import Json, PayloadRef
from streams.holds import Holds
from streams.playbook.model import Task
from streams.results.reference import ResultRef
from streams.retry import retry_failed
from streams.worker.attempt.deferred import Deferral
from streams.worker.attempt.row import PipelineRow
from streams.worker.attempt.secrets import concealed, concealed_error, concealed_value
from streams.worker.attempt.sink_scope import reference_in
from streams.worker.attempt.views import Placement
from streams.worker.errors import TaskUnavailable, UnknownTool
from streams.worker.pace.lanes import RowLanes
from streams.worker.pace.rates import RateLimits
from streams.worker.pace.task_rate import wait_for_rate
from streams.worker.port import Call, Config, Outcome, ReleasedSlot, Saver, Tool

DEFERRED = Outcome(status="success", meta={"deferred": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Owner of a pipeline; with the task and the row it makes a Call."""

    tenant_id: str
    organization_id: str
    execution_id: int
    step: str
    entity_id: int
    attempt: int
    stage_id: int | None = None
    cause_id: int | None = None
    catalog_id: int = 0
    released_slot: ReleasedSlot = nullcontext
    lanes: RowLanes = field(default_factory=lambda: RowLanes(1))
    rates: RateLimits | None = None
    holds: Holds | None = None


class TaskResults(Protocol):
    """Stores the results of tasks as their `spec.result` asks for."""

    async def place(self, task: Task, data: Json, partition: str) -> Placement:
        """Store the result if necessary, and return where it is.

        Raises:
            Refused: an event cannot carry its selected fields.
            Unavailable: the payload store stayed down.
        """
        ...

    def register(self, task: Task, payload: PayloadRef, partition: str) -> ResultRef:
        """Register a payload that a tool has stored as a result, and return its reference."""
        ...

    async def publish_before(self, kind: str, config: Config) -> None:
        """Publish stored results if a task of this kind could read them."""
        ...


class TaskCalls:
    """Calls the tasks of one step. Shared by all rows of a frame."""

    def __init__(
        self,
        tasks: Sequence[Task],
        tools: Mapping[str, Tool],
        caller: Caller,
        *,
        clock: Clock,
        give_up_after_s: float,
        deferral: Deferral | None = None,
        results: TaskResults | None = None,
    ) -> None:
        self._tasks, self._caller, self._deferral = tasks, caller, deferral
        self._clock, self._give_up_after_s, self._results = clock, give_up_after_s, results
        self._tools = [tools.get(task.kind) for task in tasks]
        self._known = tuple(tools)
        self._savers = [saver_of(task, tools) if deferral else None for task in tasks]

    async def call(self, place: int, row: PipelineRow, count: int, tries: int) -> Outcome:
        """Call the task at `place` for a row: its `count`-th call, its `tries`-th try."""
        task, tool = self._tasks[place], self._tools[place]
        if tool is None:
            return _error("tool.unknown", str(UnknownTool(task.kind, self._known)))
        try:
            config = task.config.render(row.scope)
        except Refused as error:
            return _error("expression" if task.sink is None else "sink", str(error))
        if not isinstance(config, dict):
            return _error("config", f"the configuration of {task.label} is not a mapping")
        if self._results is not None and self._savers[place] is None:
            await self._results.publish_before(task.kind, config)
        if task.sink is None:
            return await self._use(place, row, tool, config, count, tries)
        reference = config.pop("reference", None)
        outcome = await self._use(place, row, tool, config, count, tries)
        if outcome.status == "error":
            return outcome
        return replace(outcome, data=reference_in(reference, outcome.data))

    async def _use(
        self, place: int, row: PipelineRow, tool: Tool, config: Config, count: int, tries: int
    ) -> Outcome:
        saver, task = self._savers[place], self._tasks[place]
        try:
            if saver is not None and self._deferral is not None:
                self._deferral.add(row.number, task, saver, config)
                return DEFERRED
            call = self._name(task, f"{row.number}.{count}", tries)
            outcome = await self._run(place, row, tool, config, call)
        except Refused as error:
            return _error("refused", concealed(str(error)))
        return _concealed(outcome, config)

    async def rest(self, seconds: float) -> None:
        """Wait before a retry, without a lane of the frame."""
        await self._caller.lanes.rest(seconds)

    async def _run(
        self, place: int, row: PipelineRow, tool: Tool, config: Config, call: Call
    ) -> Outcome:
        """Run a tool, retrying while its dependency is down: the task's own for a while."""
        task = self._tasks[place]

        async def once() -> Outcome:
            await self._paced(task, row)
            return await tool.run(config, call)

        asked_at = asyncio.get_running_loop().time()
        try:
            return await (tool.run(config, call) if task.rate is None else once())
        except Unavailable as error:
            first = error
        until = self._clock.monotonic() + self._give_up_after_s

        def give_up(error: Unavailable, pause_s: float) -> bool:
            now = self._clock.monotonic()
            return isinstance(error, TaskUnavailable) and now + pause_s >= until

        return await retry_failed(once, first, asked_at, give_up=give_up, holds=self._caller.holds)

    async def _paced(self, task: Task, row: PipelineRow) -> None:
        """Wait for the task's rate, if it has one."""
        caller = self._caller
        if task.rate is None or caller.rates is None:
            return
        owner = f"{caller.tenant_id}/{caller.organization_id}"
        own_key = f"task/{caller.catalog_id}/{caller.step}/{task.label}"
        released = caller.lanes.released
        await wait_for_rate(caller.rates, task.rate, row.scope, owner, own_key, released)

    def _name(self, task: Task, partition: str, tries: int) -> Call:
        caller, timeout = self._caller, task.spec.get("timeout_s")
        return Call(
            tenant_id=caller.tenant_id,
            organization_id=caller.organization_id,
            execution_id=caller.execution_id,
            step=caller.step,
            task=task.label,
            entity_id=caller.entity_id,
            attempt=caller.attempt,
            partition=partition,
            stage_id=caller.stage_id,
            cause_id=caller.cause_id,
            timeout_s=float(timeout) if isinstance(timeout, (int, float)) else None,
            tries=tries,
            spelling=task.spelling,
            released_slot=caller.released_slot,
            released_lane=caller.lanes.released,
        )


def saver_of(task: Task, tools: Mapping[str, Tool]) -> Saver | None:
    """Return the tool that saves a task's calls as one batch, if it is deferrable."""
    tool = tools.get(task.kind)
    return tool if task.deferrable and _can_save(tool) else None


def _can_save(tool: object) -> TypeGuard[Saver]:
    return hasattr(tool, "save")


def _error(kind: str, message: str) -> Outcome:
    return Outcome(status="error", error={"kind": kind, "message": message})


def _concealed(outcome: Outcome, config: Config) -> Outcome:
    """Return an outcome without secrets: in every error, and in data of calls with a login."""
    if outcome.error is not None:
        message = str(outcome.error.get("message", ""))
        error = concealed_error({**outcome.error, "message": message})
        outcome = replace(outcome, error=error, detail=concealed_value(outcome.detail))
    if "auth" not in config or outcome is DEFERRED:
        return outcome
    data, meta = concealed_value(outcome.data), concealed_value(outcome.meta)
    return replace(outcome, data=data, meta=meta, detail=concealed_value(outcome.detail))
