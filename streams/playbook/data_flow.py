"""Data flow analysis: which results templates read, so that only those are fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from streams.playbook.deferred_saves import with_row_results
from streams.playbook.draft import IN_SINKS, PlaybookDraft
from streams.playbook.model import Loop, Step, Task
from streams.playbook.plain_views import reads_plain_rows, reads_plain_task
from streams.playbook.problem import Severity
from streams.playbook.spelling import Spelling
from streams.playbook.template import Template
from streams.playbook.template_compiler import KeyPath
from streams.playbook.views import reads_loops_task, reads_rows, reads_task, wants_data
from streams.playbook.yaml_document import Path

_OUTPUT = ("output", "data")


def key_paths_of(tasks: Sequence[Task], loop: Loop | None) -> frozenset[KeyPath]:
    """Return the key paths read by the templates a worker renders for a step."""
    rules = [rule for task in tasks for rule in task.rules]
    found: list[Template | None] = [task.config for task in tasks]
    sinks = [task.sink for task in tasks if task.sink is not None]
    for sink in sinks:
        found += [sink.when, sink.subject]
    found += [task.sets for task in tasks]
    for task in tasks:
        found += task.rate.templates if task.rate is not None else ()
    for rule in rules:
        found += [rule.when, rule.set_iter, rule.set_vars, rule.set_ctx]
    if loop is not None and loop.cursor is not None:
        found.append(loop.cursor.config)
    key_paths = _key_paths(found)
    return (
        frozenset(key_path for key_path in key_paths if key_path[0] not in IN_SINKS)
        if sinks
        else key_paths
    )


def with_readers(steps: Mapping[str, Step], returns: Template | None) -> dict[str, Step]:
    """Return the steps, marked with which of their results templates read."""
    key_paths = _key_paths([returns]).union(
        *(_inside(one) | _outside(one) for one in steps.values())
    )
    made = {}
    for name, step in steps.items():
        is_plain = step.spelling is Spelling.NOETL
        of_task = reads_plain_task if is_plain else reads_task
        of_rows = reads_plain_rows if is_plain else reads_rows
        tasks = tuple(
            replace(task, is_read=True, deferrable=False)
            if any(of_task(key_path, name, task.label) for key_path in key_paths)
            else task
            for task in step.tasks
        )
        has_readers = step.loop is not None and any(
            of_rows(key_path, name) for key_path in key_paths
        )
        tasks = with_row_results(tasks) if has_readers else tasks
        made[name] = replace(step, tasks=tasks, has_readers=has_readers)
    return made


def check_loops(
    draft: PlaybookDraft, steps: Mapping[str, Step], places: Mapping[str, Path]
) -> None:
    """Report templates that read a task of a loop, which has one result per row.

    For playbooks registered before this check it is a warning.
    """
    severity = Severity.ERROR if draft.clients else Severity.WARNING
    loops = {name: step for name, step in steps.items() if step.loop is not None}
    for path, template in draft.mentions:
        for key_path in sorted(template.key_paths):
            step = loops.get(key_path[0])
            if step is None or len(key_path) < 2 or path[:2] == places[step.name]:
                continue
            label, labels = key_path[1], [task.label for task in step.tasks if task.sink is None]
            if label in labels and reads_loops_task(label):
                draft.report(path, *_instead(step.name, label, labels[-1]), severity)


def check_scopes(
    draft: PlaybookDraft, steps: Mapping[str, Step], places: Mapping[str, Path]
) -> None:
    """Warn of templates that read a result of scope `step` from another step."""
    for path, template in draft.mentions:
        for key_path in sorted(template.key_paths):
            step = steps.get(key_path[0])
            if step is None or path[:2] == places[step.name]:
                continue
            task, keys = _task_read(step, key_path[1:])
            if task is None or task.result is None or task.result.scope != "step":
                continue
            if wants_data(keys, {"extracted": [one.name for one in task.result.select]}):
                what = f"the result of {step.name}.{task.label} ends with its step (scope: step)"
                hint = "it may have expired here; use scope: execution, or select the fields needed"
                draft.report(path, what, hint, Severity.WARNING)


def _task_read(step: Step, keys: KeyPath) -> tuple[Task | None, KeyPath]:
    """Return the task whose result is read (by default the last), and the keys within."""
    tasks = [task for task in step.tasks if task.sink is None]
    for task in tasks:
        if keys and task.label == keys[0]:
            return task, keys[1:]
    return (tasks[-1] if tasks else None), keys


def _instead(step: str, label: str, last: str) -> tuple[str, str]:
    what = f"{step}.{label} is nothing: {step} is a loop, and its task has a result for each row"
    rows = f"{{{{ {step}.data }}}} has the rows, each the result of {last}"
    if label == last:
        return what, f"{rows}; write {{{{ {step}.data[0] }}}} for the first row's"
    return what, f"{rows}; return what is needed of {label} from {last}, or store it with set_ctx"


def _inside(step: Step) -> frozenset[KeyPath]:
    """Return what a step's tasks read; within a loop its name is the row's position."""
    if step.loop is None:
        return step.key_paths
    return frozenset(key_path for key_path in step.key_paths if key_path[0] != step.name)


def _outside(step: Step) -> frozenset[KeyPath]:
    """Return the key paths read by the templates the planner renders for a step."""
    found = [step.when, step.sets, step.loop.source if step.loop is not None else None]
    for arc in step.arcs:
        found += [arc.when, arc.args, arc.sets]
    key_paths = _key_paths(found)
    if step.spelling is Spelling.NOETL:  # `output.data` is the step's own value
        own = frozenset((step.name, *way[2:]) for way in key_paths if way[:2] == _OUTPUT)
        return key_paths | own
    return key_paths


def _key_paths(templates: Iterable[Template | None]) -> frozenset[KeyPath]:
    return frozenset[KeyPath]().union(*(one.key_paths for one in templates if one is not None))
