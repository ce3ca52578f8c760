"""Steps of sinks: those of a loop, of a called playbook and of the whole playbook.

No single worker has such a result. The step of a loop's or a call's sink is inserted after it
and takes over its arcs. The playbook's own runs after all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from streams.events.model import Json
from streams.playbook.data_flow import key_paths_of
from streams.playbook.deferred_saves import task_names
from streams.playbook.draft import PlaybookDraft, WorkflowSource
from streams.playbook.expressions import compile_value
from streams.playbook.model import Arc, Loop, Step, Task
from streams.playbook.return_value import as_envelope
from streams.playbook.sinks.auth import with_auth
from streams.playbook.tasks import configs_of, step_sink
from streams.playbook.template import Template
from streams.playbook.yaml_document import Authored, Path, as_mapping


def needs_own_step(loop: Loop | None, tasks: Sequence[Task]) -> bool:
    """Return whether a step's sink needs a separate step."""
    return loop is not None or any(task.kind == "playbook" for task in tasks)


def with_sinks(
    draft: PlaybookDraft,
    source: WorkflowSource,
    steps: Mapping[str, Step],
    returns: Template | None,
) -> tuple[dict[str, Step], str | None]:
    """Return all steps, including those of sinks, and that of the playbook's own sink."""
    made: dict[str, Step] = {}
    for name, step in steps.items():
        written = source.steps[name]
        block = written.get("sink")
        if not isinstance(block, dict) or not needs_own_step(step.loop, step.tasks):
            made[name] = step
            continue
        path = (*source.paths[name], "sink")
        tasks = configs_of(written, source.workbook)
        sink = with_auth(draft, block, tasks, path, is_later=True)
        before, after = _followed(draft, step, sink, path, _free(name, steps))
        made |= {name: before, after.name: after}
    block = source.top.get("sink")
    if not isinstance(block, dict) or not steps:
        return made, None
    last = _last(draft, block, steps, _free("playbook", made), returns)
    return {**made, last.name: last}, last.name


def _followed(
    draft: PlaybookDraft, step: Step, block: Authored, path: Path, name: str
) -> tuple[Step, Step]:
    task = step_sink(draft, block, path, subject=_Result(step.name))
    after = Step(
        name=name,
        tasks=(task,),
        arcs=tuple(_after_sink(step.name, name, arc) for arc in step.arcs),
        inclusive=step.inclusive,
        on_error=step.on_error,
        pool=step.pool,
        persists=step.name,
        reads=task_names(task),
        key_paths=key_paths_of((task,), None),
        line=step.line,
    )
    on = "success" if task.sink is None else task.sink.on
    if step.on_error == "continue":
        return replace(step, arcs=(_to_sink(name),)), after
    handlers = [arc for arc in step.arcs if arc.handles_error]
    if on == "success":
        on_error = [_after_error(step.name, arc) for arc in handlers]
    else:  # an error that an arc handles is persisted first; then its sink follows that arc
        conditions = [arc.when for arc in handlers if arc.when is not None]
        either = _failed_and_any(step.name, conditions)
        on_error = [_to_sink(name, when=either, handles_error=True)] if conditions else []
        succeeded = compile_value(f"{{{{ {step.name}.status != 'error' }}}}")
        arcs = [_only_if(succeeded, arc) for arc in after.arcs]
        after = replace(after, arcs=tuple(arcs))
    return replace(step, arcs=(_to_sink(name), *on_error)), after


def _to_sink(name: str, *, when: Template | None = None, handles_error: bool = False) -> Arc:
    args = compile_value("{{ args }}")
    return Arc(step=name, when=when, args=args, handles_error=handles_error)


def _only_if(condition: Template, arc: Arc) -> Arc:
    """Return an arc that needs a condition, unless it handles errors."""
    if arc.handles_error:
        return arc
    return replace(arc, when=condition if arc.when is None else _All(condition, arc.when))


def _last(
    draft: PlaybookDraft,
    block: Authored,
    steps: Mapping[str, Step],
    name: str,
    returns: Template | None,
) -> Step:
    subject: Template = (
        _Last(frozenset(one.name for one in steps.values() if _may_end(one, steps)))
        if returns is None
        else _Returned(returns)
    )
    subject = _OrFailure(subject)
    task = step_sink(draft, block, ("sink",), subject=subject, passes=returns is None)
    key_paths = key_paths_of((task,), None)
    return Step(
        name=name, tasks=(task,), reads=task_names(task), key_paths=key_paths, pool=_pool(steps)
    )


def _may_end(step: Step, steps: Mapping[str, Step]) -> bool:
    """Return whether a step may be the last: no arc holds, or the next step is skipped."""
    nexts = [steps.get(arc.step) for arc in step.arcs]
    is_led_on = any(arc.when is None for arc in step.arcs)
    return not is_led_on or any(one is not None and one.when is not None for one in nexts)


def _pool(steps: Mapping[str, Step]) -> str:
    return next(iter(steps.values())).pool


def _free(name: str, steps: Mapping[str, Step]) -> str:
    made = f"{name}_sink"
    while made in steps:
        made += "_"
    return made


def _value(scope: Mapping[str, object], name: str) -> Json:
    return cast(Json, scope.get(name))


def _failed(step: str) -> Template:
    return compile_value(f"{{{{ {step}.status == 'error' }}}}")


def _after_error(name: str, arc: Arc) -> Arc:
    return arc if arc.when is None else replace(arc, when=_All(_failed(name), arc.when))


def _failed_and_any(step: str, conditions: Sequence[Template]) -> Template:
    return _All(_failed(step), _Any(*conditions))


def _after_sink(step: str, sink: str, arc: Arc) -> Arc:
    asks = arc.when is not None and step in arc.when.names
    return replace(arc, when=_WithSinkStatus(step, sink, arc.when)) if asks and arc.when else arc


class _WithSinkStatus:
    """A condition that treats a step whose sink failed as failed."""

    def __init__(self, step: str, sink: str, when: Template) -> None:
        self._step, self._sink, self._when = step, sink, when
        self.names, self.key_paths = when.names | {sink}, when.key_paths | {(sink, "status")}

    def render(self, scope: Mapping[str, object]) -> Json:
        step, sink = scope.get(self._step), scope.get(self._sink)
        if isinstance(step, Mapping) and isinstance(sink, Mapping) and sink["status"] == "error":
            failed = {"status": "error", "error": sink.get("error")}
            scope = {**scope, self._step: {**step, **failed}}
        return self._when.render(scope)


class _Conditions:
    """Several conditions."""

    def __init__(self, *conditions: Template) -> None:
        self._conditions = conditions
        self.names = frozenset().union(*(one.names for one in conditions))
        self.key_paths = frozenset().union(*(one.key_paths for one in conditions))


class _All(_Conditions):
    """Conjunction of conditions."""

    def render(self, scope: Mapping[str, object]) -> Json:
        return all(one.render(scope) for one in self._conditions)


class _Any(_Conditions):
    """Disjunction of conditions."""

    def render(self, scope: Mapping[str, object]) -> Json:
        return any(one.render(scope) for one in self._conditions)


class _Result:
    """The result of a step, if it has one."""

    def __init__(self, step: str) -> None:
        self._step, self.names, self.key_paths = step, frozenset({step}), frozenset({(step,)})

    def render(self, scope: Mapping[str, object]) -> Json:
        return _value(scope, self._step)


class _Last:
    """The result of the step that ended last, as the planner names it."""

    def __init__(self, steps: frozenset[str]) -> None:
        self.names, self.key_paths = steps, frozenset((name,) for name in steps)

    def render(self, scope: Mapping[str, object]) -> Json:
        last = str(as_mapping(_value(scope, "args")).get("last_step", ""))
        if last not in scope:  # a step that only routes has no result
            return {"status": "success", "data": None, "meta": {}}
        return _value(scope, last)


class _Returned:
    """The playbook's return value, as a result."""

    def __init__(self, returns: Template) -> None:
        self._returns, self.names, self.key_paths = returns, returns.names, returns.key_paths

    def render(self, scope: Mapping[str, object]) -> Json:
        return {"meta": {}, **as_envelope(self._returns.render(scope))}


class _OrFailure:
    """The failure of the playbook if the planner names one, else another value."""

    def __init__(self, otherwise: Template) -> None:
        self._otherwise = otherwise
        self.names, self.key_paths = otherwise.names, otherwise.key_paths

    def render(self, scope: Mapping[str, object]) -> Json:
        failure = as_mapping(_value(scope, "args")).get("failure")
        if failure is None:
            return self._otherwise.render(scope)
        return {"status": "error", "data": None, "meta": {}, "error": failure}
