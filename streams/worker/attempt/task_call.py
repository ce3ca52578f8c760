"""One call of one task: render its configuration, run its tool, conceal secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard

from streams.clock import Clock
from streams.errors import Refused, Unavailable
from streams.events.model import Json, PayloadRef
from streams.holds import Holds
from streams.playbook.model import Task
from streams.results.reference import ResultRef
from streams.retry import retry
from streams.worker.attempt.deferred import Deferral
from streams.worker.attempt.row import PipelineRow
from streams.worker.attempt.secrets import concealed, concealed_error, concealed_value
from streams.worker.attempt.sink_scope import reference_in
from streams.worker.attempt.views import Placement
from streams.worker.errors import TaskUnavailable, UnknownTool
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
    released_slot: ReleasedSlot = nullcontext
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
        patience_s: float,
        deferral: Deferral | None = None,
        results: TaskResults | None = None,
    ) -> None:
        self._tasks, self._caller, self._deferral = tasks, caller, deferral
        self._clock, self._patience_s, self._results = clock, patience_s, results
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
        call = self._name(task, f"{row.number}.{count}", tries)
        if task.sink is None:
            return await self._use(place, row, tool, config, call)
        reference = config.pop("reference", None)
        outcome = await self._use(place, row, tool, config, call)
        if outcome.status == "error":
            return outcome
        return replace(outcome, data=reference_in(reference, outcome.data))

    async def _use(
        self, place: int, row: PipelineRow, tool: Tool, config: Config, call: Call
    ) -> Outcome:
        saver = self._savers[place]
        try:
            if saver is not None and self._deferral is not None:
                self._deferral.add(row.number, self._tasks[place], saver, config)
                return DEFERRED
            outcome = await self._run(tool, config, call)
        except Refused as error:
            return _error("refused", concealed(str(error)))
        return _concealed(outcome, config)

    async def _run(self, tool: Tool, config: Config, call: Call) -> Outcome:
        """Run a tool, retrying while its dependency is down: the task's own for a while."""
        until: float | None = None

        def give_up(error: Unavailable, pause_s: float) -> bool:
            nonlocal until
            now = self._clock.monotonic()
            until = now + self._patience_s if until is None else until
            return isinstance(error, TaskUnavailable) and now + pause_s >= until

        return await retry(
            lambda: tool.run(config, call), give_up=give_up, holds=self._caller.holds
        )

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
            timeout_s=float(timeout) if isinstance(timeout, (int, float)) else None,
            tries=tries,
            released_slot=caller.released_slot,
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
