"""Compiler of a step's pipeline: from `tool` to tasks and their sinks."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from streams.events.model import Json
from streams.playbook.auth import AUTH, AUTH_KEYS, check_auth, default_credential
from streams.playbook.cluster import report_cluster
from streams.playbook.deferred_saves import is_lone_insert
from streams.playbook.draft import ALWAYS, IDENTIFIER, IN_PIPELINES, PlaybookDraft
from streams.playbook.eval_rules import rules_of
from streams.playbook.grammar import STEP_FIELDS, is_flat
from streams.playbook.model import Task
from streams.playbook.problem import Severity
from streams.playbook.rate import rate_of
from streams.playbook.repeated_effects import may_repeat
from streams.playbook.result_policy import (
    policy_of,
    report_hidden_by_label,
    report_ignored_by_put,
)
from streams.playbook.shape import nearest
from streams.playbook.sinks.auth import with_auth
from streams.playbook.sinks.blocks import SinkPosition, sink_task
from streams.playbook.sinks.check import check_rules
from streams.playbook.template import Constant, Template, mapping
from streams.playbook.tool_kinds import RAW, USUAL, kinds
from streams.playbook.unread_keys import REFUSED, report_unread_task
from streams.playbook.views import RESERVED
from streams.playbook.workbook import resolve_action, with_action
from streams.playbook.yaml_document import Authored, Path, as_mapping

_ASIDE = frozenset({"kind", "eval", "spec", "sink"})
_TAKEN = RESERVED.union(ALWAYS, IN_PIPELINES)


def tasks_of(
    draft: PlaybookDraft, step: Authored, path: Path, workbook: Mapping[str, Authored]
) -> tuple[Task, ...]:
    """Return the tasks of a step, in order; empty for a routing step.

    A sink of a task comes after it; the step's own is not among them.
    """
    is_row = "loop" in step
    tool, name = step.get("tool"), step.get("step")
    label = name if isinstance(name, str) else "tool"
    one = _Label(label, frozenset({label}), is_row)
    if is_flat(step):
        where = "tool" if "tool" in step else "type"
        return _task(draft, one, _flat_task(step), path, workbook, kind_key=where)
    if isinstance(tool, dict):
        return _task(draft, one, tool, (*path, "tool"), workbook)
    if isinstance(tool, list):
        return _pipeline(draft, tool, (*path, "tool"), workbook, is_row)
    return ()


def step_sink(
    draft: PlaybookDraft,
    block: Authored,
    path: Path,
    labels: Collection[str] = (),
    *,
    subject: Template | None = None,
    passes: bool = False,
) -> Task:
    """Return the task of a step's sink, under a free label."""
    label = "sink"
    while label in labels:
        label = f"step_{label}"
    position = SinkPosition(of=None, label=label, subject=subject, passes=passes)
    return _sink(draft, block, path, position)


def configs_of(step: Authored, workbook: Mapping[str, Authored]) -> list[Authored]:
    """Return the configurations of a step's tasks, merged with the workbook's actions."""
    tool = step.get("tool")
    found: list[Authored] = []
    if is_flat(step):
        found = [_flat_task(step)]
    elif isinstance(tool, dict):
        found = [tool]
    elif isinstance(tool, list):
        tasks = [one for item in tool if isinstance(item, dict) for one in item.values()]
        found = [one for one in tasks if isinstance(one, dict)]
    return [with_action(one, workbook) or {} for one in found]


def _sink(draft: PlaybookDraft, block: Authored, path: Path, position: SinkPosition) -> Task:
    at = (*path, "eval")
    check_rules(draft, block.get("eval"), at)
    rules = rules_of(draft, block.get("eval"), at, frozenset({position.label}))
    return sink_task(draft, block, path, position, rules)


@dataclass(frozen=True, slots=True)
class _Label:
    """A task's label, among those of its pipeline."""

    name: str
    all: frozenset[str]
    is_row: bool = False
    """Whether it runs for every row of a loop."""


def _flat_task(step: Authored) -> Authored:
    """Return the task of a step with flat tool keys."""
    kind = step.get("tool") or step.get("type")
    config = {key: value for key, value in step.items() if key not in STEP_FIELDS}
    config |= {key: step[key] for key in ("eval", "action", "spec") if key in step}
    if kind is not None:
        config["kind"] = kind
    if kind == "python" and config.keys().isdisjoint(("args", "input")):
        config["args"] = "{{ args }}"  # the arc's arguments, as in noetl.io/v1
    return config


def _pipeline(
    draft: PlaybookDraft,
    tool: list[Json],
    path: Path,
    workbook: Mapping[str, Authored],
    is_row: bool,
) -> tuple[Task, ...]:
    if not tool:
        draft.report(path, "has no tasks", "leave `tool` out of a step that only routes")
    labels = [next(iter(item)) for item in tool if isinstance(item, dict) and len(item) == 1]
    made: list[Task] = []
    seen: list[str] = []
    for place, item in enumerate(tool):
        here = (*path, place)
        if not isinstance(item, dict):
            continue
        if len(item) != 1:
            hint = "write `- label: {kind: …}`, with the keys of the task below its label"
            draft.report(here, "is not one label with its task", hint)
            continue
        ((label, config),) = item.items()
        if label in seen:
            draft.report((*here, label), f"label {label!r} is used twice", at_key=True)
        if not re.fullmatch(IDENTIFIER, label):
            what = f"label {label!r} is not a valid name in templates"
            draft.report((*here, label), what, at_key=True)
        elif label in _TAKEN:
            what = f"label {label!r} means something else in templates"
            hint = "choose another label"
            draft.report((*here, label), what, hint, draft.new_error, at_key=True)
        seen.append(label)
        if isinstance(config, dict):
            one = _Label(label, frozenset(labels), is_row)
            made.extend(_task(draft, one, config, (*here, label), workbook))
    return tuple(made)


def _task(
    draft: PlaybookDraft,
    label: _Label,
    config: Authored,
    path: Path,
    workbook: Mapping[str, Authored],
    kind_key: str = "kind",
) -> tuple[Task, ...]:
    """Return the task, followed by that of its sink."""
    config = resolve_action(draft, config, path, workbook)
    kind, spec = _kind(draft, label.name, config, path, kind_key), config.get("spec")
    rules = rules_of(draft, config.get("eval"), (*path, "eval"), label.all)
    result, rate = policy_of(draft, spec, path), rate_of(draft, spec, path)
    report_unread_task(draft, kind, config, path)
    report_ignored_by_put(draft, kind, config, result, path)
    report_hidden_by_label(draft, label.name, result, path)
    task = Task(
        label=label.name,
        kind=kind,
        config=_config(draft, kind, config, path),
        rules=rules,
        deferrable=result is None and rate is None and is_lone_insert(kind, config, rules),
        spec=as_mapping(spec),
        result=result,
        rate=rate,
        line=draft.document.line(path),
    )
    if not isinstance(block := config.get("sink"), dict):
        return (task,)
    own = f"{label.name}_sink"
    while own in label.all:
        own += "_"
    position = SinkPosition(of=label.name, label=own, is_per_row=label.is_row)
    at = (*path, "sink")
    return task, _sink(draft, with_auth(draft, block, [config], at), at, position)


def _kind(draft: PlaybookDraft, label: str, config: Authored, path: Path, kind_key: str) -> str:
    """Return the kind of a task; an unknown one, and an effect that may repeat, is reported."""
    kind = config.get("kind")
    if not isinstance(kind, str):
        draft.report(path, f"task {label!r} has no kind", f"there are {', '.join(kinds())}")
        return ""
    if kind not in kinds():
        hint = nearest(kind, kinds()) or f"there are {', '.join(kinds())}"
        draft.report((*path, kind_key), f"there is no tool {kind!r}", hint)
    elif (repeated := may_repeat(kind, config)) is not None:
        what, hint = repeated
        where = (*path, "method" if "method" in config else kind_key)
        draft.report(where, f"at least once: {what}", hint, Severity.NOTE)
    report_cluster(draft, kind, config, (*path, kind_key))
    return kind


def _config(draft: PlaybookDraft, kind: str, config: Authored, path: Path) -> Template:
    parts: dict[str, Template] = {}
    for key, value in config.items():
        if key in _ASIDE:
            continue
        if key in AUTH_KEYS:
            check_auth(draft, (*path, key), key, config)
            parts[AUTH] = draft.template((*path, key), value)
            continue
        usual = (*USUAL.get(kind, ()), *REFUSED.get(kind, ()))
        if usual and key not in usual and (hint := nearest(key, usual)):
            what = f"{key!r} is not usual for {kind}"
            draft.report((*path, key), what, hint, Severity.WARNING, at_key=True)
        if key in RAW.get(kind, ()):
            parts[key] = Constant(value)
            _check_code(draft, (*path, key), value)
        else:
            parts[key] = draft.template((*path, key), value)
    if kind == "postgres" and (only := default_credential(draft, config)) is not None:
        parts[AUTH] = Constant(only)
    return mapping(parts)


def _check_code(draft: PlaybookDraft, path: Path, code: Json) -> None:
    """Report code that is not valid Python, and note a result that will be wrapped."""
    if not isinstance(code, str):
        return
    try:
        ast.parse(code)
    except SyntaxError as error:
        draft.report(path, f"is not valid Python: {error.msg} (line {error.lineno} of the code)")
        return
    if not re.search(r"[\"']status[\"']", code):
        what = "its result has no envelope, so it is wrapped as {status, data, meta}"
        hint = 'return {"status": "success", "data": …}'
        draft.report(path, what, hint, Severity.NOTE)
