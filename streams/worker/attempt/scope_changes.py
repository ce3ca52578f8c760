"""Changes of a row's scope: the outcome of a task, and what its rules set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streams.errors import Refused
from streams.events.model import Json
from streams.playbook.model import Rule, Task
from streams.playbook.spelling import Spelling
from streams.playbook.template import Template
from streams.worker.attempt.row import PipelineRow, extend
from streams.worker.attempt.views import (
    Placement,
    outcome_view,
    output_view,
    plain_value,
    task_view,
)
from streams.worker.port import Outcome


def expose(
    task: Task, outcome: Outcome, placed: Placement | None, tries: int, scope: dict[str, object]
) -> None:
    """Add a task's outcome to the scope of its row, for its rules and for later tasks."""
    if task.spelling is Spelling.NOETL:
        _expose_plain(task, outcome, placed, tries, scope)
        return
    scope[task.label] = scope["_prev"] = task_view(outcome, placed)
    if task.rules:
        scope["outcome"] = outcome_view(task.kind, outcome, placed, tries)


def _expose_plain(
    task: Task, outcome: Outcome, placed: Placement | None, tries: int, scope: dict[str, object]
) -> None:
    value = plain_value(outcome, placed)
    results = scope.get("results")
    scope["results"] = {**(results if isinstance(results, Mapping) else {}), task.label: value}
    scope[task.label] = scope["_prev"] = value
    scope["_task"], scope["_attempt"] = task.label, tries
    if task.sets is not None:
        scope["output"] = outcome.data
        scope.update(_checked(task.sets.render(scope), "set"))
    if task.rules:
        scope["output"] = output_view(task.kind, outcome, tries)


def apply_changes(rule: Rule, row: PipelineRow, *, is_flat: bool) -> None:
    """Apply what a rule sets.

    In a flat scope, values of `ctx` are names of their own, too, and nothing is written before
    everything is computed.
    """
    if not (templates := _templates(rule)):
        return
    if is_flat:
        computed = {name: template.render(row.scope) for name, template in templates}
        for name, value in computed.items():
            _write(row, name, _checked(value, name))
        row.scope.update(_checked(computed.get("ctx", {}), "ctx"))
        return
    for name, template in templates:
        _write(row, name, _checked(template.render(row.scope), f"set_{name}"))


def _templates(rule: Rule) -> Sequence[tuple[str, Template]]:
    if rule.set_iter is None and rule.set_vars is None and rule.set_ctx is None:
        return ()
    parts = {"iter": rule.set_iter, "vars": rule.set_vars, "ctx": rule.set_ctx}
    return [(name, part) for name, part in parts.items() if part is not None]


def _write(row: PipelineRow, name: str, changes: dict[str, Json]) -> None:
    if name == "ctx":
        row.ctx.update(changes)
    elif name == "vars":
        row.vars.update(changes)
    extend(row.scope, name, changes)


def _checked(value: Json, name: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise Refused(f"{name} is {type(value).__name__}, not a mapping of names to values")
    return value
