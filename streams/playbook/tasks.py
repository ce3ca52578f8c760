"""The pipeline of a step: from `tool` to tasks, with their rules."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from streams.playbook.auth import AUTH, AUTH_KEYS, check_auth, default_credential
from streams.playbook.deferred_saves import is_lone_insert
from streams.playbook.draft import ALWAYS, IDENTIFIER, IN_PIPELINES, PlaybookDraft
from streams.playbook.expressions import Constant, Template, mapping
from streams.playbook.grammar import STEP_FIELDS, is_flat
from streams.playbook.model import Do, Rule, Task
from streams.playbook.problem import Severity
from streams.playbook.repeated_effects import may_repeat
from streams.playbook.result_policy import (
    policy_of,
    tell_what_a_label_hides,
    tell_what_put_leaves_out,
)
from streams.playbook.shape import nearest
from streams.playbook.sinks.auth import with_auth
from streams.playbook.sinks.blocks import SinkPosition, sink_task
from streams.playbook.sinks.check import check_rules
from streams.playbook.tool_kinds import RAW, USUAL, kinds
from streams.playbook.views import RESERVED
from streams.playbook.yaml_document import Path

_ASIDE = frozenset({"kind", "eval", "spec", "sink"})
_TAKEN = RESERVED.union(ALWAYS, IN_PIPELINES)
_RETRY_KEYS = ("attempts", "backoff", "delay")


def tasks_of(
    draft: PlaybookDraft, step: Mapping[str, Any], path: Path, workbook: Mapping[str, Any]
) -> tuple[Task, ...]:
    """Return the tasks of a step, in order; none for a routing step.

    A sink of a task comes after it; the step's own is not among them.
    """
    is_row = "loop" in step
    tool, name = step.get("tool"), step.get("step")
    label = name if isinstance(name, str) else "tool"
    if is_flat(step):
        return _flat(draft, step, path, _Label(label, frozenset({label}), is_row), workbook)
    if isinstance(tool, dict):
        one = _Label(label, frozenset({label}), is_row=is_row)
        return _task(draft, one, tool, (*path, "tool"), workbook)
    if isinstance(tool, list):
        return _pipeline(draft, tool, (*path, "tool"), workbook, is_row)
    return ()


def step_sink(
    draft: PlaybookDraft,
    block: Mapping[str, Any],
    path: Path,
    labels: Collection[str],
    **place: Any,
) -> Task:
    """Return the task of a step's sink; a name that is taken gets a longer one."""
    label = "sink"
    while label in labels:
        label = f"step_{label}"
    return _sink(draft, block, path, SinkPosition(of=None, label=label, **place))


def configs_of(step: Mapping[str, Any], workbook: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the configurations of a step's tasks, with what the workbook says of them."""
    tool = step.get("tool")
    found: list[Any] = [tool]
    if is_flat(step):
        found = [_as_task(step)]
    elif isinstance(tool, list):
        found = [one for item in tool if isinstance(item, dict) for one in item.values()]
    return [_with_action(one, workbook) or {} for one in found if isinstance(one, dict)]


def _sink(draft: PlaybookDraft, block: Mapping[str, Any], path: Path, place: SinkPosition) -> Task:
    at = (*path, "eval")
    check_rules(draft, block.get("eval"), at)
    rules = _rules(draft, block.get("eval"), at, frozenset({place.label}))
    return sink_task(draft, block, path, place, rules)


@dataclass(frozen=True, slots=True)
class _Label:
    """A task's label, among those of its pipeline."""

    name: str
    all: frozenset[str]
    is_row: bool = False
    """Whether it runs for every row of a loop."""


def _flat(
    draft: PlaybookDraft,
    step: Mapping[str, Any],
    path: Path,
    label: _Label,
    workbook: Mapping[str, Any],
) -> tuple[Task, ...]:
    where = "tool" if "tool" in step else "type"
    return _task(draft, label, _as_task(step), path, workbook, kind_key=where)


def _as_task(step: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the task that a flat step is."""
    kind = step.get("tool") or step.get("type")
    config = {key: value for key, value in step.items() if key not in STEP_FIELDS}
    config |= {key: step[key] for key in ("eval", "action", "spec") if key in step}
    if kind is not None:
        config["kind"] = kind
    if kind == "python" and config.keys().isdisjoint(("args", "input")):
        config["args"] = "{{ args }}"  # what the arc gave, as the first version has it
    return config


def _pipeline(
    draft: PlaybookDraft, tool: list[Any], path: Path, workbook: Mapping[str, Any], is_row: bool
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
            draft.report((*here, label), f"label {label!r} is there twice", at_key=True)
        if not re.fullmatch(IDENTIFIER, label):
            draft.report((*here, label), f"label {label!r} is no name for templates", at_key=True)
        elif label in _TAKEN:  # what was registered before this was said runs on
            what = f"label {label!r} means something else in templates"
            severity = Severity.ERROR if draft.clients else Severity.WARNING
            draft.report((*here, label), what, "choose another label", severity, at_key=True)
        seen.append(label)
        if isinstance(config, dict):
            one = _Label(label, frozenset(labels), is_row)
            made.extend(_task(draft, one, config, (*here, label), workbook))
    return tuple(made)


def _task(
    draft: PlaybookDraft,
    label: _Label,
    config: Mapping[str, Any],
    path: Path,
    workbook: Mapping[str, Any],
    kind_key: str = "kind",
) -> tuple[Task, ...]:
    """Return the task, and the one of its sink behind it."""
    config = _resolved(draft, config, path, workbook)
    kind = config.get("kind")
    if not isinstance(kind, str):
        draft.report(path, f"task {label.name!r} has no kind", f"there are {', '.join(kinds())}")
        kind = ""
    elif kind not in kinds():
        hint = nearest(kind, kinds()) or f"there are {', '.join(kinds())}"
        draft.report((*path, kind_key), f"there is no tool {kind!r}", hint)
    elif (twice := may_repeat(kind, config)) is not None:
        what, hint = twice
        where = (*path, "method" if "method" in config else kind_key)
        draft.report(where, f"at least once: {what}", hint, Severity.NOTE)
    spec = config.get("spec")
    mark = draft.document.keys.get(path) or draft.document.marks.get(path)
    rules = _rules(draft, config.get("eval"), (*path, "eval"), label.all)
    result = policy_of(draft, spec, path)
    tell_what_put_leaves_out(draft, kind, config, result, path)
    tell_what_a_label_hides(draft, label.name, result, path)
    task = Task(
        label=label.name,
        kind=kind,
        config=_config(draft, kind, config, path),
        rules=rules,
        deferrable=result is None and is_lone_insert(kind, config, rules),
        spec=spec if isinstance(spec, dict) else {},
        result=result,
        line=mark.line if mark else 0,
    )
    if not isinstance(block := config.get("sink"), dict):
        return (task,)
    own = f"{label.name}_sink"
    while own in label.all:
        own += "_"
    place = SinkPosition(of=label.name, label=own, is_per_row=label.is_row)
    at = (*path, "sink")
    return task, _sink(draft, with_auth(draft, block, [config], at), at, place)


def _resolved(
    draft: PlaybookDraft, config: Mapping[str, Any], path: Path, workbook: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Put the workbook's action in, where the task names one that is there."""
    if (found := _with_action(config, workbook)) is not None:
        return found
    name = _action_of(config)
    hint = nearest(str(name), tuple(workbook)) or "name one of `workbook`"
    draft.report(path, f"there is no action {name!r} in the workbook", hint)
    return {"kind": "noop"}


def _action_of(config: Mapping[str, Any]) -> Any:
    return config.get("action") or config.get("name")


def _with_action(
    config: Mapping[str, Any], workbook: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return a task with the workbook's action, if it names one; its own keys win."""
    named = config.get("kind") == "workbook" or ("action" in config and "kind" not in config)
    if not named:
        return config
    name = _action_of(config)
    action = workbook.get(name) if isinstance(name, str) else None
    if action is None:
        return None
    own = {k: v for k, v in config.items() if k not in ("kind", "action", "name")}
    if isinstance(own.get("args"), dict) and isinstance(action.get("args"), dict):
        own["args"] = {**action["args"], **own["args"]}
    return {**action, **own}


def _config(draft: PlaybookDraft, kind: str, config: Mapping[str, Any], path: Path) -> Template:
    parts: dict[str, Template] = {}
    for key, value in config.items():
        if key in _ASIDE:
            continue
        if key in AUTH_KEYS:
            check_auth(draft, (*path, key), key, config)
            parts[AUTH] = draft.template((*path, key), value)
            continue
        usual = USUAL.get(kind, ())
        if usual and key not in usual and (hint := nearest(key, usual)):
            what = f"{key!r} is not usual for {kind}"
            draft.report((*path, key), what, hint, Severity.WARNING, at_key=True)
        if key in RAW.get(kind, ()):
            parts[key] = Constant(value)
            _look_at_code(draft, (*path, key), value)
        else:
            parts[key] = draft.template((*path, key), value)
    if kind == "postgres" and (only := default_credential(draft, config)) is not None:
        parts[AUTH] = Constant(only)
    return mapping(parts)


def _look_at_code(draft: PlaybookDraft, path: Path, code: Any) -> None:
    if not isinstance(code, str):
        return
    try:
        ast.parse(code)
    except SyntaxError as error:
        draft.report(path, f"is no Python: {error.msg} (line {error.lineno} of the code)")
        return
    if not re.search(r"[\"']status[\"']", code):
        what = "its result has no envelope, so it is wrapped as {status, data, meta}"
        hint = 'return {"status": "success", "data": …}'
        draft.report(path, what, hint, Severity.NOTE)


def _rules(
    draft: PlaybookDraft, rules: Any, path: Path, labels: frozenset[str]
) -> tuple[Rule, ...]:
    made: list[Rule] = []
    for place, rule in enumerate(rules if isinstance(rules, list) else ()):
        here = (*path, place)
        if not isinstance(rule, dict):
            continue
        if made and made[-1].when is None:
            draft.report(here, "comes after `else`, so it is never followed")
        if ("expr" in rule) == ("else" in rule):
            draft.report(here, "has to begin with either `expr` or `else`")
        inner = rule.get("else")
        verdict = {**rule, **inner} if isinstance(inner, dict) else rule
        at = (*here, "else") if isinstance(inner, dict) else here
        when = draft.condition((*here, "expr"), rule["expr"]) if "expr" in rule else None
        made.append(_rule(draft, verdict, at, when, labels))
    return tuple(made)


def _rule(
    draft: PlaybookDraft,
    verdict: Mapping[str, Any],
    path: Path,
    when: Template | None,
    labels: frozenset[str],
) -> Rule:
    do, to = verdict.get("do"), verdict.get("to")
    changes = {
        key: draft.changes(path, verdict, key) for key in ("set_iter", "set_vars", "set_ctx")
    }
    if do is None and not any(changes.values()):
        draft.report(path, "says nothing to do", f"add do: {' | '.join(Do)}")
    known = Do(do) if do in tuple(Do) else Do.CONTINUE
    if known is Do.JUMP and to is None:
        draft.report(path, "jumps nowhere", "add `to` with the label of a task")
    elif to is not None and str(to) not in labels:
        hint = nearest(str(to), tuple(labels)) or f"there are {', '.join(sorted(labels))}"
        draft.report((*path, "to"), f"there is no task {to!r} in this step", hint)
    if known is not Do.RETRY:
        for key in _RETRY_KEYS:
            if key in verdict:
                what = f"{key!r} is for `do: retry` and means nothing here"
                draft.report((*path, key), what, None, Severity.WARNING, at_key=True)
    attempts, delay = verdict.get("attempts"), verdict.get("delay")
    return Rule(
        when=when,
        do=known,
        attempts=attempts if isinstance(attempts, int) else 3,
        backoff=str(verdict.get("backoff", "fixed")),
        delay_s=float(delay) if isinstance(delay, (int, float)) else 1.0,
        to=str(to) if known is Do.JUMP and to is not None else None,
        set_iter=changes["set_iter"],
        set_vars=changes["set_vars"],
        set_ctx=changes["set_ctx"],
    )
