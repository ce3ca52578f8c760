"""Compiler of steps: guard, pipeline, loop, arcs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from streams.events.model import Json
from streams.playbook.control_flow import check_jumps
from streams.playbook.data_flow import key_paths_of
from streams.playbook.deferred_saves import task_names, with_deferred
from streams.playbook.draft import (
    ALWAYS,
    IDENTIFIER,
    IN_PIPELINES,
    IN_SINKS,
    PlaybookDraft,
    WorkflowSource,
)
from streams.playbook.grammar import is_flat
from streams.playbook.loops import loop_of
from streams.playbook.model import Arc, Loop, Step, Task
from streams.playbook.pools import check_pool
from streams.playbook.problem import Severity
from streams.playbook.sandbox import sandbox
from streams.playbook.shape import nearest
from streams.playbook.sinks.auth import with_auth
from streams.playbook.sinks.sink_steps import needs_own_step
from streams.playbook.tasks import configs_of, step_sink, tasks_of
from streams.playbook.template import Template
from streams.playbook.unread_keys import report_unread_step
from streams.playbook.yaml_document import Authored, Path, as_list, as_mapping


def step_of(draft: PlaybookDraft, source: WorkflowSource, name: str) -> Step:
    """Return a step; its sink is among its tasks unless it needs a separate step."""
    step, path = source.steps[name], source.paths[name]
    _check_name(draft, name, path)
    if "result" in as_mapping(step.get("spec")) and not is_flat(step):
        what = "has no effect here; a step may have many tasks"
        at: Path = (*path, "spec", "result")
        draft.report(at, what, "put it into `spec` of a task", Severity.WARNING, at_key=True)
    report_unread_step(draft, step, path)
    check_pool(draft, (*path, "pool"), step.get("pool"))
    loop = loop_of(draft, step, path)
    arcs, inclusive = _arcs(draft, step.get("next"), (*path, "next"))
    # Only an arc that reads this step handles its error.
    arcs = tuple(
        replace(arc, handles_error=arc.when is not None and name in arc.when.names) for arc in arcs
    )
    sets = draft.changes(path, step, "set")
    outside = _names([sets, *(arc.when for arc in arcs), *(arc.args for arc in arcs)])
    tasks = with_deferred(_tasks(draft, source, name, loop), outside)
    if loop is not None and not tasks:
        draft.report((*path, "loop"), "a loop without a tool does nothing", at_key=True)
    reads = frozenset().union(*(task_names(task) for task in tasks))
    if loop is not None and loop.cursor is not None:
        reads |= loop.cursor.config.names
    return Step(
        name=name,
        tasks=tasks,
        when=draft.optional_condition(path, step),
        loop=loop,
        arcs=arcs,
        inclusive=inclusive,
        sets=sets,
        on_error=str(step.get("on_error", "fail")),
        pool=str(step.get("pool") or source.pool),
        reads=reads,
        key_paths=key_paths_of(tasks, loop),
        line=draft.document.marks[path].line,
    )


def _tasks(
    draft: PlaybookDraft, source: WorkflowSource, name: str, loop: Loop | None
) -> tuple[Task, ...]:
    step, path = source.steps[name], source.paths[name]
    tasks = tasks_of(draft, step, path, source.workbook)
    check_jumps(draft, [task for task in tasks if task.sink is None], (*path, "tool"))
    block = step.get("sink")
    if not isinstance(block, dict) or needs_own_step(loop, tasks):
        return tasks
    at = (*path, "sink")
    sink = with_auth(draft, block, configs_of(step, source.workbook), at)
    return (*tasks, step_sink(draft, sink, at, [task.label for task in tasks]))


def _check_name(draft: PlaybookDraft, name: str, path: Path) -> None:
    at = (*path, "step")
    if name in (*ALWAYS, *IN_PIPELINES, *sandbox().globals):
        draft.report(at, f"{name!r} means something else in templates", "choose another name")
    elif name in IN_SINKS:
        what = f"templates of sinks read {name!r} as what they persist, not as this step"
        draft.report(at, what, "choose another name", Severity.WARNING)
    elif not re.fullmatch(IDENTIFIER, name):
        hint = "use letters, digits and _, so that templates can name its result"
        draft.report(at, f"{name!r} is not a valid step name", hint)


def _arcs(draft: PlaybookDraft, value: Json, path: Path) -> tuple[tuple[Arc, ...], bool]:
    """Return the arcs of a step, and whether all that hold are taken."""
    inclusive, items, at = False, value, path
    if isinstance(value, dict):
        inclusive = as_mapping(value.get("spec")).get("mode") == "inclusive"
        items, at = value.get("arcs"), (*path, "arcs")
    if isinstance(items, str):
        return (_arc(draft, items, {}, at, at),), inclusive
    made = []
    for place, item in enumerate(as_list(items)):
        here = (*at, place)
        if isinstance(item, str):
            made.append(_arc(draft, item, {}, here, here))
        elif isinstance(item, dict) and isinstance(step := item.get("step"), str):
            made.append(_arc(draft, step, item, here, (*here, "step")))
    return tuple(made), inclusive


def _arc(draft: PlaybookDraft, name: str, arc: Authored, path: Path, at: Path) -> Arc:
    """Return the arc to the step `name`, whose name is at path `at`."""
    if name not in draft.steps:
        hint = nearest(name, draft.steps)
        if hint is None and name == "end":
            hint = "leave `next` out where the playbook ends"
        draft.report(
            at, f"there is no step {name!r}", hint or f"there are {', '.join(draft.steps)}"
        )
    if isinstance(args := arc.get("args"), dict):
        draft.given.setdefault(name, set()).update(args)
    return Arc(
        step=name,
        when=draft.optional_condition(path, arc),
        args=draft.changes(path, arc, "args"),
    )


def _names(templates: Sequence[Template | None]) -> frozenset[str]:
    return frozenset().union(*(one.names for one in templates if one is not None))


def names_by_step(
    draft: PlaybookDraft, steps: Mapping[str, Step], paths: Mapping[str, Path]
) -> dict[Path, frozenset[str]]:
    """Return the names that templates of each step can read besides the common ones."""
    found = {}
    for name, step in steps.items():
        names = {*IN_PIPELINES, *draft.given.get(name, ()), *(task.label for task in step.tasks)}
        found[paths[name]] = frozenset(names | ({step.loop.iterator} if step.loop else set()))
    return found
