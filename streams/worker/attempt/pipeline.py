"""Pipeline of a step: its tasks in sequence for one row, controlled by `eval`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from streams.clock import Clock
from streams.errors import Refused
from streams.events.model import Json, PayloadRef
from streams.playbook.model import Do, Rule, Sink, Task
from streams.playbook.spelling import Spelling
from streams.worker.attempt.deferred import Deferral
from streams.worker.attempt.eval_rules import delay, matching, usual
from streams.worker.attempt.row import PipelineRow, RowOutcome, TaskOutcome
from streams.worker.attempt.scope_changes import apply_changes, expose
from streams.worker.attempt.sink_scope import envelope_for, sink_scope
from streams.worker.attempt.task_call import DEFERRED, Caller, TaskCalls, TaskResults
from streams.worker.attempt.views import Placement
from streams.worker.port import Outcome, Tool

MAX_JUMPS = 100_000
"""More jumps than this for one row are treated as an endless loop."""
_JUMPS_PER_YIELD = 256


class _Stuck(Refused):
    """A jump to a task that does not exist, or one too many."""


class Pipeline:
    """Runs the tasks of one step. Shared by all rows of a frame; has no state of a row."""

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
        self._tasks, self._results = tuple(tasks), results
        self._calls = TaskCalls(
            self._tasks,
            tools,
            caller,
            clock=clock,
            give_up_after_s=give_up_after_s,
            deferral=deferral,
            results=results,
        )
        self._labels = {task.label: place for place, task in enumerate(self._tasks)}
        self._sinks: dict[str | None, list[int]] = {}
        for place, task in enumerate(self._tasks):
            if task.sink is not None:
                self._sinks.setdefault(task.sink.of, []).append(place)

    async def run(self, row: PipelineRow) -> RowOutcome:
        """Run the pipeline once, including its sinks.

        Raises:
            Unavailable: a tool's dependency stayed down; the row is neither done nor failed.
        """
        if None not in self._sinks:
            return await self._run(row)
        return await self._persist(None, row, await self._run(row))

    async def _run(self, row: PipelineRow) -> RowOutcome:
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
                    ended = RowOutcome(outcome.status, outcome.data, outcome.meta, outcome.error)
                    persisted = await self._persist(task.label, row, ended)
                    if persisted.status == "error" and outcome.status == "success":
                        return persisted
                do = usual(outcome.status) if rule is None else rule.do
                if do is Do.CONTINUE:
                    place += 1
                elif do is Do.JUMP and rule is not None:
                    place = await self._jump(rule, row)
                elif do is Do.BREAK:
                    break
                else:
                    error = {**_error_of(outcome), "task": label}
                    return RowOutcome("error", outcome.data, outcome.meta, error, label)
            except _Stuck as stuck:
                return RowOutcome.failed(task, "jump", str(stuck))
            except Refused as refused:
                return RowOutcome.failed(task, "expression", str(refused))
        return RowOutcome("success", outcome.data, outcome.meta, task=label)

    async def _persist(self, of: str | None, row: PipelineRow, ran: RowOutcome) -> RowOutcome:
        """Run the sinks of a task, or of the step, and return the outcome.

        A reference goes to `meta.sink`; if only the sink ran, it is the data.
        """
        for place in self._sinks[of]:
            task = self._tasks[place]
            if (sink := task.sink) is None:
                continue
            persisted: RowOutcome | None
            try:
                if sink.passes:
                    ran = _passed(sink, row)
                persisted = await self._sink(place, sink, row, ran)
            except Refused as refused:
                persisted = RowOutcome.failed(task, "sink", str(refused))
            if persisted is None:
                continue
            if persisted.status == "error":
                return persisted if ran.status == "success" else _both_failed(ran, persisted)
            is_alone = of is None and len(self._tasks) == 1
            data = persisted.data if is_alone and not sink.passes else ran.data
            ran = replace(ran, data=data, meta={**ran.meta, "sink": persisted.data})
        return ran

    async def _sink(
        self, place: int, sink: Sink, row: PipelineRow, ran: RowOutcome
    ) -> RowOutcome | None:
        """Run one sink for the outcome of a task or of the step; None: it does not apply."""
        envelope = envelope_for(sink, row.scope, ran.envelope)
        if envelope is None:
            return None
        inner = replace(row, scope=sink_scope(row.scope, envelope))
        outcome, rule = await self._task(place, inner)
        label = self._tasks[place].label
        row.retries, row.scope[label] = inner.retries, inner.scope[label]
        row.outcomes = inner.outcomes
        do = usual(outcome.status) if rule is None else rule.do
        if do is not Do.FAIL:
            return RowOutcome("success", outcome.data, outcome.meta)
        error = {**_error_of(outcome), "task": label}
        return RowOutcome("error", ran.data, ran.meta, error, ran.task)

    async def _jump(self, rule: Rule, row: PipelineRow) -> int:
        """Return the place to continue from; yield to the event loop now and then."""
        row.jumps += 1
        if row.jumps > MAX_JUMPS:
            raise _Stuck(f"{MAX_JUMPS} jumps for one row; the rule that ends them never holds")
        if row.jumps % _JUMPS_PER_YIELD == 0:
            await asyncio.sleep(0)
        if (place := self._labels.get(rule.to or "")) is None:
            raise _Stuck(f"jump to unknown task {rule.to!r}")
        return place

    async def _task(self, place: int, row: PipelineRow) -> tuple[Outcome, Rule | None]:
        """Call one task, with retries, and return its outcome and the rule to follow."""
        task, scope = self._tasks[place], row.scope
        count = row.calls[task.label] = row.calls.get(task.label, 0) + 1
        tries = 0
        while True:
            tries += 1
            outcome = await self._calls.call(place, row, count, tries)
            placed = None
            if outcome.stored is not None:
                partition = f"{row.number}.{count}.{tries}"
                outcome = self._registered(task, outcome, outcome.stored, partition)
            elif task.result is not None:
                placed = await self._place(task, outcome, f"{row.number}.{count}.{tries}")
            if task.result is not None or task.is_read or outcome.stored is not None:
                last = TaskOutcome(outcome, placed, task.result)
                row.outcomes = {**(row.outcomes or {}), task.label: last}
            expose(task, outcome, placed, tries, scope)
            if not task.rules:
                return outcome, None
            rule = matching(task, scope)
            if rule is None:
                return outcome, None
            apply_changes(rule, row, is_flat=task.spelling is Spelling.NOETL)
            if rule.do is not Do.RETRY:
                return outcome, rule
            if tries >= rule.attempts:
                return _given_up(outcome, tries), None
            row.retries += 1
            await self._calls.rest(delay(rule, tries))

    async def _place(self, task: Task, outcome: Outcome, partition: str) -> Placement:
        assert task.result is not None
        if outcome.status != "success" or outcome is DEFERRED:
            return Placement({})
        if self._results is None:
            return Placement(task.result.extract(outcome.data))
        return await self._results.place(task, outcome.data, partition)

    def _registered(
        self, task: Task, outcome: Outcome, stored: PayloadRef, partition: str
    ) -> Outcome:
        """Return an outcome with the reference of its payload."""
        if self._results is None or not isinstance(outcome.data, dict):
            return outcome
        ref = self._results.register(task, stored, partition)
        return replace(outcome, data={**outcome.data, "store": ref.store, "_ref": ref.uri})


def _error_of(outcome: Outcome) -> Mapping[str, Json]:
    return outcome.error or {"kind": "fail", "message": "failed by a rule of the playbook"}


def _both_failed(ran: RowOutcome, sink: RowOutcome) -> RowOutcome:
    """Return the first failure, with the message of its sink's."""
    first, then = dict(ran.error or {}), sink.error or {}
    message = f"{first.get('message')}; and {then.get('task')} failed: {then.get('message')}"
    return replace(ran, error={**first, "message": message})


def _passed(sink: Sink, row: PipelineRow) -> RowOutcome:
    """Return the outcome of a step whose data is what its sink persists."""
    envelope: object = sink.subject.render(row.scope) if sink.subject is not None else None
    whole = envelope if isinstance(envelope, Mapping) else {}
    return RowOutcome("success", whole.get("data"), whole.get("meta") or {})


def _given_up(outcome: Outcome, tries: int) -> Outcome:
    """Return the outcome of the last try as a failure."""
    error: dict[str, Json] = dict(outcome.error or {"kind": "retry", "message": "a rule retried"})
    error["message"] = f"{error.get('message')} (after {tries} tries)"
    return Outcome(
        status="error", data=outcome.data, meta=outcome.meta, error=error, detail=outcome.detail
    )
