"""Compiler of steps: tasks, loop, changes, arcs."""

from __future__ import annotations

from streams.events.model import Json
from streams.playbook.data_flow import key_paths_of
from streams.playbook.deferred_saves import task_names, with_literal_save
from streams.playbook.draft import PlaybookDraft
from streams.playbook.model import Arc, Step
from streams.playbook.noetl.grammar import STEP_FIELDS
from streams.playbook.noetl.loops import loop_of
from streams.playbook.noetl.rules import changes_of, condition_of
from streams.playbook.noetl.tasks import StepSource, tasks_of
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.spelling import Spelling
from streams.playbook.template import Template
from streams.playbook.template_compiler import NameRules
from streams.playbook.tool_kinds import USUAL
from streams.playbook.yaml_document import Path, as_list, as_mapping

_OF_TOOLS = frozenset(key for usual in USUAL.values() for key in usual)
_ERROR_EVENT = "call.error"


def step_of(draft: PlaybookDraft, source: StepSource, pool: str) -> Step:
    """Return the compiled step."""
    step, path, name = source.step, source.path, source.name
    values = frozenset((*source.steps, *source.labels))
    draft.name_rules = NameRules(lenient=True, values=values)
    _check_keys(draft, source)
    loop, tasks = loop_of(draft, step, path), with_literal_save(tasks_of(draft, source))
    if loop is not None and not tasks:
        draft.report((*path, "loop"), "a loop without a tool does nothing", at_key=True)
    arcs, inclusive = _arcs(draft, source)
    reads = frozenset().union(*(task_names(task) for task in tasks))
    if loop is not None and loop.cursor is not None:
        reads |= loop.cursor.config.names
    return Step(
        name=name,
        tasks=tasks,
        loop=loop,
        arcs=arcs,
        inclusive=inclusive,
        sets=_sets(draft, step.get("set"), (*path, "set")),
        pool=pool,
        reads=reads,
        key_paths=key_paths_of(tasks, loop),
        spelling=Spelling.NOETL,
        line=draft.document.line(path),
    )


def _check_keys(draft: PlaybookDraft, source: StepSource) -> None:
    """Report keys that have no effect; those of a tool are an error: they were meant to act."""
    for key in source.step:
        if key in STEP_FIELDS:
            continue
        path, what = (*source.path, key), f"{key!r} has no effect here"
        if key in _OF_TOOLS:
            draft.report(path, what, "it belongs under `tool`", at_key=True)
        else:
            hint = nearest(key, tuple(STEP_FIELDS))
            draft.report(path, what, hint, Severity.WARNING, at_key=True)
    if "policy" in as_mapping(source.step.get("spec")):
        at = (*source.path, "spec", "policy")
        hint = "put rules under `spec.policy` of a task"
        draft.report(at, "the policy of a step has no effect", hint, Severity.WARNING, at_key=True)


def _sets(draft: PlaybookDraft, value: Json, path: Path) -> Template | None:
    """Compile a step's or arc's `set`: at this level every scope means the execution's."""
    plain = {
        key.partition(".")[2] if key.startswith(("iter.", "step.")) else key: item
        for key, item in as_mapping(value).items()
    }
    return changes_of(draft, plain, path).ctx


def _arcs(draft: PlaybookDraft, source: StepSource) -> tuple[tuple[Arc, ...], bool]:
    """Return the arcs of a step, and whether all that hold are taken."""
    following = as_mapping(source.step.get("next"))
    made = []
    for place, item in enumerate(as_list(following.get("arcs"))):
        arc, path = as_mapping(item), (*source.path, "next", "arcs", place)
        name = str(arc.get("step"))
        if name not in source.steps:
            hint = nearest(name, sorted(source.steps))
            what = f"there is no step {name!r}, so this arc is passed over"
            draft.report((*path, "step"), what, hint, Severity.WARNING)
            continue
        when = arc.get("when")
        made.append(
            Arc(
                step=name,
                when=None if when is None else condition_of(draft, (*path, "when"), when),
                sets=_sets(draft, arc.get("set"), (*path, "set")),
                handles_error=isinstance(when, str) and _ERROR_EVENT in when,
            )
        )
    return tuple(made), as_mapping(following.get("spec")).get("mode") == "inclusive"
