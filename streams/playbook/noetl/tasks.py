"""Compiler of a step's `tool`: one task, or a list of named ones."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from streams.playbook.auth import AUTH, AUTH_KEYS
from streams.playbook.cluster import report_cluster
from streams.playbook.deferred_saves import is_literal_save
from streams.playbook.draft import PlaybookDraft
from streams.playbook.errors import BadTemplate
from streams.playbook.expressions import compile_value
from streams.playbook.model import Task
from streams.playbook.noetl.grammar import TASK_FIELDS
from streams.playbook.noetl.results import policy_from
from streams.playbook.noetl.rules import rules_of
from streams.playbook.noetl.templates import Code, Configuration, NewValues, WholeScope
from streams.playbook.problem import Severity
from streams.playbook.rate import rate_of
from streams.playbook.repeated_effects import may_repeat
from streams.playbook.shape import nearest
from streams.playbook.spelling import Spelling
from streams.playbook.template import Constant, Template
from streams.playbook.template_compiler import NameRules
from streams.playbook.tool_kinds import TRANSFER, kinds, read_keys
from streams.playbook.workbook import resolve_action
from streams.playbook.yaml_document import Authored, Path, as_mapping

_ASIDE = frozenset((*TASK_FIELDS, "description")) - {"input"}
_WITH_ARGS = ("container",)
"""Kinds whose `args` are those of a command, not an old name of `input`."""
_INERT = {"retry": "write `spec.policy.rules` with `do: retry`"}
"""Keys that no engine reads."""


@dataclass(frozen=True, slots=True)
class StepSource:
    """A step's document with what its tasks are compiled against."""

    step: Authored
    path: Path
    workbook: Mapping[str, Authored]
    steps: frozenset[str]

    @property
    def name(self) -> str:
        """The step's name."""
        return str(self.step.get("step"))

    @property
    def tools(self) -> list[tuple[Path, Authored]]:
        """The configurations of its tasks, with their places."""
        tool, path = self.step.get("tool"), (*self.path, "tool")
        if isinstance(tool, dict):
            return [(path, tool)]
        items = enumerate(tool) if isinstance(tool, list) else ()
        return [((*path, place), one) for place, one in items if isinstance(one, dict)]

    @property
    def labels(self) -> list[str]:
        """The labels of its tasks: their names, else `task_<i>`; of a single one, the step's."""
        if isinstance(self.step.get("tool"), dict):
            return [self.name]
        tools = enumerate(self.tools)
        return [str(one.get("name") or f"task_{place}") for place, (_, one) in tools]


def tasks_of(draft: PlaybookDraft, source: StepSource) -> tuple[Task, ...]:
    """Return the tasks of a step, in order."""
    labels = source.labels
    for place, label in enumerate(labels):
        if label in labels[:place]:
            path = (*source.tools[place][0], "name")
            draft.report(path, f"two tasks of this step are called {label!r}")
    if source.step.get("tool") == []:
        draft.report((*source.path, "tool"), "has no tasks")
    return tuple(
        _task(draft, source, labels[place], config, path, place == len(labels) - 1)
        for place, (path, config) in enumerate(source.tools)
    )


def _task(
    draft: PlaybookDraft,
    source: StepSource,
    label: str,
    config: Authored,
    path: Path,
    is_last: bool,
) -> Task:
    config = resolve_action(draft, config, path, source.workbook)
    kind = _kind(draft, label, config, path)
    result = policy_from(draft, config, path)
    if result is None and is_last:
        result = policy_from(draft, source.step, source.path)
    sets = as_mapping(config.get("set"))
    is_plain = result is None and not source.step.get("input") and is_literal_save(kind, config)
    return Task(
        label=label,
        kind=kind,
        config=_config(draft, source, kind, config, path),
        rules=rules_of(draft, config.get("spec"), path, label, source.labels),
        sets=_sets(draft, sets, (*path, "set")) if sets else None,
        spec={},
        result=result,
        rate=rate_of(draft, config.get("spec"), path),
        deferrable=is_plain,
        spelling=Spelling.NOETL,
        line=draft.document.line(path),
    )


def _sets(draft: PlaybookDraft, sets: Authored, path: Path) -> Template:
    """Compile the tool's own `set`: names for later tasks, whatever scope they are written with."""
    return NewValues(
        {key.rpartition(".")[2]: draft.template((*path, key), value) for key, value in sets.items()}
    )


def _kind(draft: PlaybookDraft, label: str, config: Authored, path: Path) -> str:
    kind = config.get("kind")
    if not isinstance(kind, str):
        return ""
    if kind not in kinds():
        hint = nearest(kind, kinds()) or f"there are {', '.join(kinds())}"
        draft.report((*path, "kind"), f"there is no tool {kind!r}", hint)
    elif (repeated := may_repeat(kind, config)) is not None:
        draft.report((*path, "kind"), f"at least once: {repeated[0]}", repeated[1], Severity.NOTE)
    report_cluster(draft, kind, config, (*path, "kind"))
    for key in as_mapping(config.get("spec")):
        if key != "policy":
            hint = "put the tool's keys directly under `tool`"
            what = f"{key!r} has no effect under `spec`"
            draft.report((*path, "spec", key), what, hint, Severity.WARNING, at_key=True)
    return kind


def _config(
    draft: PlaybookDraft, source: StepSource, kind: str, config: Authored, path: Path
) -> Template:
    parts: dict[str, Template] = {}
    for key, value in config.items():
        is_input = key == "input" or (key == "args" and kind not in _WITH_ARGS)
        if key in _ASIDE or is_input:
            continue
        if key in _INERT:
            what = f"{key!r} has no effect"
            draft.report((*path, key), what, _INERT[key], Severity.WARNING, at_key=True)
            continue
        _check_key(draft, kind, key, (*path, key))
        if kind == "postgres" and key == "pool":
            what = "'pool' has no effect: connections are pooled by credential"
            draft.report((*path, key), what, None, Severity.NOTE, at_key=True)
        if kind == "transfer" and key in TRANSFER:
            _check_transfer(draft, as_mapping(value), key, (*path, key))
        name = AUTH if key in AUTH_KEYS else key
        parts[name] = draft.template((*path, key), value)
    if kind in ("python", "script") and isinstance(code := config.get("code"), str):
        parts["code"] = _code(draft, code, (*path, "code"))
        if re.search(r"\bcontext\b", code):
            parts["context"] = WholeScope(source.steps)
    return Configuration(parts, _input(draft, source, config, path))


def _check_key(draft: PlaybookDraft, kind: str, key: str, path: Path) -> None:
    usual = read_keys(kind, Spelling.NOETL)
    if usual and key not in (*usual, *(AUTH_KEYS if "auth" in usual else ())):
        hint = nearest(key, usual) or f"there are {', '.join(usual)}"
        what = f"{key!r} is not a key of {kind} and may have no effect"
        draft.report(path, what, hint, Severity.WARNING, at_key=True)


def _check_transfer(draft: PlaybookDraft, end: Authored, name: str, path: Path) -> None:
    for key in end:
        if key not in TRANSFER[name]:
            hint = nearest(key, TRANSFER[name]) or f"there are {', '.join(TRANSFER[name])}"
            what = f"{key!r} of a {name} has no effect"
            draft.report((*path, key), what, hint, Severity.WARNING, at_key=True)


def _input(
    draft: PlaybookDraft, source: StepSource, config: Authored, path: Path
) -> dict[str, Template]:
    """Return the keys of `input`: the tool's own (or `args`, its old name), then the step's."""
    made: dict[str, Template] = {}
    for key in ("args", "input"):
        for name, value in as_mapping(config.get(key)).items():
            made[name] = draft.template((*path, key, name), value)
    for name, value in as_mapping(source.step.get("input")).items():
        made[name] = draft.template((*source.path, "input", name), value)
    return made


def _code(draft: PlaybookDraft, code: str, path: Path) -> Template:
    """Compile code: it is a template where its braces are one, and every name in them exists."""
    made: Template = Constant(code)
    if "{{" in code or "{%" in code:
        with contextlib.suppress(BadTemplate):
            made = Code(code, compile_value(code, NameRules()))
    if isinstance(made, Constant):
        try:
            ast.parse(code)
        except SyntaxError as error:
            at = f"line {error.lineno} of the code"
            draft.report(path, f"is not valid Python: {error.msg} ({at})")
    return made
