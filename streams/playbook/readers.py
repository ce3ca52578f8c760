"""Who reads what: which results templates name, so that nothing else is kept or fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from streams.playbook.compiled import Way
from streams.playbook.draft import IN_SINKS
from streams.playbook.expressions import Template
from streams.playbook.model import Loop, Step, Task
from streams.playbook.views import reads_rows, reads_task


def ways_of(tasks: Sequence[Task], loop: Loop | None) -> frozenset[Way]:
    """Return what the templates that a worker renders for a step read."""
    rules = [rule for task in tasks for rule in task.rules]
    found: list[Template | None] = [task.config for task in tasks]
    sinks = [task.sink for task in tasks if task.sink is not None]
    for sink in sinks:
        found += [sink.when, sink.subject]
    for rule in rules:
        found += [rule.when, rule.set_iter, rule.set_vars, rule.set_ctx]
    if loop is not None and loop.cursor is not None:
        found.append(loop.cursor.config)
    ways = _ways(found)
    return frozenset(way for way in ways if way[0] not in IN_SINKS) if sinks else ways


def with_readers(steps: Mapping[str, Step], returns: Template | None) -> dict[str, Step]:
    """Return the steps, each told which of its results templates of the playbook read."""
    ways = _ways([returns]).union(*(_inside(one) | _outside(one) for one in steps.values()))
    made = {}
    for name, step in steps.items():
        tasks = tuple(
            replace(task, is_read=True)
            if any(reads_task(way, name, task.label) for way in ways)
            else task
            for task in step.tasks
        )
        has_readers = step.loop is not None and any(reads_rows(way, name) for way in ways)
        made[name] = replace(step, tasks=tasks, has_readers=has_readers)
    return made


def _inside(step: Step) -> frozenset[Way]:
    """Return what a step's tasks read; a loop's name means the row's place to its own rows."""
    if step.loop is None:
        return step.ways
    return frozenset(way for way in step.ways if way[0] != step.name)


def _outside(step: Step) -> frozenset[Way]:
    """Return what the templates that the planner renders for a step read."""
    found = [step.when, step.sets, step.loop.source if step.loop is not None else None]
    for arc in step.arcs:
        found += [arc.when, arc.args]
    return _ways(found)


def _ways(templates: Iterable[Template | None]) -> frozenset[Way]:
    return frozenset[Way]().union(*(one.ways for one in templates if one is not None))
