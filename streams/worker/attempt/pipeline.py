"""The pipeline of a step: tasks one after the other for one row, steered by `eval`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from streams.clock import Clock
from streams.errors import Refused, Unavailable
from streams.events.model import Json, PayloadRef
from streams.playbook.expressions import Template
from streams.playbook.model import Do, Rule, Sink, Task
from streams.playbook.result_policy import ResultPolicy
from streams.worker.attempt.deferred import Deferral
from streams.worker.attempt.eval_rules import delay, matching, usual
from streams.worker.attempt.secrets import concealed, concealed_error, concealed_value
from streams.worker.attempt.sink_scope import envelope_for, reference_in, sink_scope
from streams.worker.attempt.views import Kept, outcome_view, task_view
from streams.worker.errors import UnknownTool
from streams.worker.port import Aside, Call, Config, Outcome, Saver, Tool
from streams.worker.retry import patiently

MAX_JUMPS = 100_000
"""More jumps than this for one row are taken for an endless loop."""
_BREATHE = 256
DEFERRED = Outcome(status="success", meta={"deferred": True})


class _Stuck(Refused):
    """A jump that leads nowhere, or round for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whose pipeline it is; with the task and the row it makes a Call."""

    tenant_id: str
    organization_id: str
    execution_id: int
    step: str
    entity_id: int
    attempt: int
    stage_id: int | None = None
    aside: Aside = nullcontext


class Results(Protocol):
    """Does with a task's result what its `spec.result` says."""

    async def keep(self, task: Task, data: Json, partition: str) -> Kept:
        """Store the result where it must be stored, and return what is at hand of it.

        Raises:
            Refused: its selected fields cannot be in an event.
            Unavailable: the payload store stayed down.
        """
        ...

    def note(self, task: Task, payload: PayloadRef, partition: str) -> Mapping[str, Any]:
        """Make a result of a payload that a tool has stored, and return its reference."""
        ...

    async def tell_before(self, kind: str, config: Config) -> None:
        """Let others find what was kept so far, if a task of this kind could ask for it."""
        ...


@dataclass(frozen=True, slots=True)
class Left:
    """The last outcome of a task whose result is kept, stored, or read by other steps."""

    outcome: Outcome
    kept: Kept | None
    policy: ResultPolicy | None = None


@dataclass(slots=True)
class Row:
    """One pass through a pipeline: its names, and what it has changed so far."""

    number: int
    scope: dict[str, Any]
    """This row's own mapping; it must hold the mappings `iter`, `vars` and `ctx`."""
    ctx: dict[str, Json] = field(default_factory=dict)
    """What `set_ctx` changed."""
    retries: int = 0
    jumps: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    left: dict[str, Left] | None = None
    """What tasks left by their labels; None: nothing that anybody asks for."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a pass ended: the last task's envelope."""

    status: Literal["success", "error"]
    data: Json
    meta: Mapping[str, Json]
    error: Mapping[str, Json] | None = None
    """kind, message and task"""
    task: str = ""
    """The label of the last task."""

    @property
    def envelope(self) -> dict[str, Any]:
        """The result as sinks see it."""
        whole = {"status": self.status, "data": self.data, "meta": self.meta}
        return whole if self.error is None else {**whole, "error": self.error}


class Pipeline:
    """Runs the tasks of one step. Reused for all rows of a frame; keeps nothing of a row."""

    def __init__(
        self,
        tasks: Sequence[Task],
        tools: Mapping[str, Tool],
        caller: Caller,
        *,
        clock: Clock,
        patience_s: float,
        deferral: Deferral | None = None,
        results: Results | None = None,
    ) -> None:
        self._results = results
        self._tasks, self._caller, self._deferral = tuple(tasks), caller, deferral
        self._clock, self._patience_s = clock, patience_s
        self._tools = [tools.get(task.kind) for task in self._tasks]
        self._known = tuple(tools)
        self._savers = [saver_of(task, tools) if deferral else None for task in self._tasks]
        self._labels = {task.label: place for place, task in enumerate(self._tasks)}
        self._sinks: dict[str | None, list[int]] = {}
        for place, task in enumerate(self._tasks):
            if task.sink is not None:
                self._sinks.setdefault(task.sink.of, []).append(place)

    async def run(self, row: Row) -> Ran:
        """Run the pipeline once, its sinks included.

        Raises:
            Unavailable: what a tool itself needs stayed down; the row is neither done nor failed.
        """
        if None not in self._sinks:
            return await self._run(row)
        return await self._persist(None, row, await self._run(row))

    async def _run(self, row: Row) -> Ran:
        place, outcome, label = 0, Outcome(status="success"), ""
        while place < len(self._tasks):
            task = self._tasks[place]
            if task.sink is not None:
                place += 1
                continue
            label = task.label
            try:
                outcome, rule = await self._task(place, row)
                if task.label in self._sinks:
                    ended = Ran(outcome.status, outcome.data, outcome.meta, outcome.error)
                    kept = await self._persist(task.label, row, ended)
                    if kept.status == "error" and outcome.status == "success":
                        return kept
                do = usual(outcome.status) if rule is None else rule.do
                if do is Do.CONTINUE:
                    place += 1
                elif do is Do.JUMP and rule is not None:
                    place = await self._jump(rule, row)
                elif do is Do.BREAK:
                    break
                else:
                    error = outcome.error or {"kind": "fail", "message": "the playbook said fail"}
                    return Ran(
                        "error", outcome.data, outcome.meta, {**error, "task": task.label}, label
                    )
            except _Stuck as stuck:
                return _failed(task, "jump", str(stuck))
            except Refused as refused:
                return _failed(task, "expression", str(refused))
        return Ran("success", outcome.data, outcome.meta, task=label)

    async def _persist(self, of: str | None, row: Row, ran: Ran) -> Ran:
        """Run the sinks of a task, or of the step, and return how that ended.

        A reference goes to `meta.sink`; where nothing but the sink ran, it is the data.
        """
        for place in self._sinks[of]:
            task = self._tasks[place]
            if (sink := task.sink) is None:
                continue
            try:
                if sink.passes:
                    ran = _passed(sink, row)
                kept = await self._sink(place, sink, row, ran)
            except Refused as refused:
                kept = _failed(task, "sink", str(refused))
            if kept is None:
                continue
            if kept.status == "error":
                return kept if ran.status == "success" else _also(ran, kept)
            is_alone = of is None and len(self._tasks) == 1
            data = kept.data if is_alone and not sink.passes else ran.data
            ran = replace(ran, data=data, meta={**ran.meta, "sink": kept.data})
        return ran

    async def _sink(self, place: int, sink: Sink, row: Row, ran: Ran) -> Ran | None:
        """Run one sink for what a task or the step came to; None: it has nothing to do."""
        envelope = envelope_for(sink, row.scope, ran.envelope)
        if envelope is None:
            return None
        inner = replace(row, scope=sink_scope(row.scope, envelope))
        outcome, rule = await self._task(place, inner)
        label = self._tasks[place].label
        row.retries, row.scope[label], row.left = inner.retries, inner.scope[label], inner.left
        do = usual(outcome.status) if rule is None else rule.do
        if do is not Do.FAIL:
            return Ran("success", outcome.data, outcome.meta)
        error = outcome.error or {"kind": "fail", "message": "the playbook said fail"}
        return Ran("error", ran.data, ran.meta, {**error, "task": label}, ran.task)

    async def _jump(self, rule: Rule, row: Row) -> int:
        """Return the place to go on from; let others run now and then."""
        row.jumps += 1
        if row.jumps > MAX_JUMPS:
            raise _Stuck(f"{MAX_JUMPS} jumps for one row; the rule that ends them never holds")
        if row.jumps % _BREATHE == 0:
            await asyncio.sleep(0)
        if (place := self._labels.get(rule.to or "")) is None:
            raise _Stuck(f"there is no task {rule.to!r} to jump to")
        return place

    async def _task(self, place: int, row: Row) -> tuple[Outcome, Rule | None]:
        """Call one task, again where a rule says so, and return the rule to follow."""
        task, scope = self._tasks[place], row.scope
        count = row.calls[task.label] = row.calls.get(task.label, 0) + 1
        tries = 0
        while True:
            tries += 1
            outcome = await self._call(place, row, count, tries)
            kept, partition = None, f"{row.number}.{count}.{tries}"
            if outcome.stored is not None:
                outcome = self._noted(task, outcome, outcome.stored, partition)
            elif task.result is not None:
                kept = await self._keep(task, outcome, partition)
            if task.result is not None or task.is_read or outcome.stored is not None:
                row.left = {**(row.left or {}), task.label: Left(outcome, kept, task.result)}
            scope[task.label] = scope["_prev"] = task_view(outcome, kept)
            if not task.rules:
                return outcome, None
            scope["outcome"] = outcome_view(task.kind, outcome, kept, tries)
            rule = matching(task, scope)
            if rule is None:
                return outcome, None
            _apply(rule, row)
            if rule.do is not Do.RETRY:
                return outcome, rule
            if tries >= rule.attempts:
                return _given_up(outcome, tries), None
            row.retries += 1
            await asyncio.sleep(delay(rule, tries))

    async def _keep(self, task: Task, outcome: Outcome, partition: str) -> Kept:
        assert task.result is not None
        if outcome.status != "success" or outcome is DEFERRED:
            return Kept({})
        if self._results is None:
            return Kept(task.result.extract(outcome.data))
        return await self._results.keep(task, outcome.data, partition)

    def _noted(self, task: Task, outcome: Outcome, stored: PayloadRef, partition: str) -> Outcome:
        """Return an outcome that also tells the name under which its payload can be had."""
        if self._results is None or not isinstance(outcome.data, dict):
            return outcome
        ref = self._results.note(task, stored, partition)
        return replace(outcome, data={**outcome.data, "store": ref["store"], "_ref": ref["ref"]})

    async def _call(self, place: int, row: Row, count: int, tries: int) -> Outcome:
        task, tool = self._tasks[place], self._tools[place]
        if tool is None:
            return _error("tool.unknown", str(UnknownTool(task.kind, self._known)))
        try:
            config = task.config.render(row.scope)
        except Refused as error:
            return _error("expression" if task.sink is None else "sink", str(error))
        if not isinstance(config, dict):
            return _error("config", f"the configuration of {task.label} is no mapping")
        if self._results is not None and self._savers[place] is None:
            await self._results.tell_before(task.kind, config)
        call = self._name(task, f"{row.number}.{count}", tries)
        if task.sink is None:
            return await self._use(place, row, tool, config, call)
        told = config.pop("reference", None)
        outcome = await self._use(place, row, tool, config, call)
        if outcome.status == "error":
            return outcome
        return replace(outcome, data=reference_in(told, outcome.data))

    async def _use(self, place: int, row: Row, tool: Tool, config: Config, call: Call) -> Outcome:
        saver = self._savers[place]
        try:
            if saver is not None and self._deferral is not None:
                self._deferral.add(row.number, self._tasks[place], saver, config)
                return DEFERRED
            outcome = await self._run_tool(tool, config, call)
        except Refused as error:
            return _error("refused", concealed(str(error)))
        return _shown(outcome, config)

    async def _run_tool(self, tool: Tool, config: Config, call: Call) -> Outcome:
        """Run a tool, and for a while again where what it needs is away."""
        try:
            return await tool.run(config, call)
        except Unavailable:
            pass
        until = self._clock.monotonic() + self._patience_s
        return await patiently(lambda: tool.run(config, call), clock=self._clock, until=until)

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
            aside=caller.aside,
        )


def saver_of(task: Task, tools: Mapping[str, Tool]) -> Saver | None:
    """Return the tool that saves a task's calls as one batch, if it may and can."""
    tool: Any = tools.get(task.kind)
    return tool if task.deferrable and hasattr(tool, "save") else None


def _apply(rule: Rule, row: Row) -> None:
    scope = row.scope
    # A change makes another mapping: rows share `ctx`, and deferred calls keep what they saw.
    if rule.set_iter is not None:
        scope["iter"] = {**scope["iter"], **_mapping(rule.set_iter, scope, "set_iter")}
    if rule.set_vars is not None:
        scope["vars"] = {**scope["vars"], **_mapping(rule.set_vars, scope, "set_vars")}
    if rule.set_ctx is not None:
        changes = _mapping(rule.set_ctx, scope, "set_ctx")
        row.ctx.update(changes)
        scope["ctx"] = {**scope["ctx"], **changes}


def _mapping(template: Template, scope: Mapping[str, Any], name: str) -> dict[str, Json]:
    value = template.render(scope)
    if not isinstance(value, dict):
        raise Refused(f"{name}: is {type(value).__name__}, not a mapping of names to values")
    return value


def _error(kind: str, message: str) -> Outcome:
    return Outcome(status="error", error={"kind": kind, "message": message})


def _failed(task: Task, kind: str, message: str) -> Ran:
    return Ran("error", None, {}, {"kind": kind, "message": message, "task": task.label})


def _shown(outcome: Outcome, config: Config) -> Outcome:
    """Return an outcome without secrets: of every error, and of what a login was used for."""
    if outcome.error is not None:
        message = str(outcome.error.get("message", ""))
        error = concealed_error({**outcome.error, "message": message})
        outcome = replace(outcome, error=error, detail=concealed_value(outcome.detail))
    if "auth" not in config or outcome is DEFERRED:
        return outcome
    data, meta = concealed_value(outcome.data), concealed_value(outcome.meta)
    return replace(outcome, data=data, meta=meta, detail=concealed_value(outcome.detail))


def _also(ran: Ran, kept: Ran) -> Ran:
    """Return what failed first, which is what matters, and that its sink failed as well."""
    first, then = dict(ran.error or {}), kept.error or {}
    told = f"{first.get('message')}; and {then.get('task')} failed: {then.get('message')}"
    return replace(ran, error={**first, "message": told})


def _passed(sink: Sink, row: Row) -> Ran:
    """Return what a sink persists as what its step gives."""
    envelope: Any = sink.subject.render(row.scope) if sink.subject is not None else None
    whole = envelope if isinstance(envelope, Mapping) else {}
    return Ran("success", whole.get("data"), whole.get("meta") or {})


def _given_up(outcome: Outcome, tries: int) -> Outcome:
    """Return the outcome of the last try as a failure, whatever the rule retried for."""
    error: dict[str, Any] = dict(outcome.error or {"kind": "retry", "message": "not as wanted"})
    error["message"] = f"{error.get('message')} (after {tries} tries)"
    return Outcome(
        status="error", data=outcome.data, meta=outcome.meta, error=error, detail=outcome.detail
    )
