"""Compiler of `spec.policy.rules`, and of scoped changes (`set`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams.events.model import Json
from streams.playbook.draft import PlaybookDraft
from streams.playbook.model import Do, Rule
from streams.playbook.noetl.templates import Condition, NewValues
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.template import Template
from streams.playbook.yaml_document import Authored, Path, as_list, as_mapping

_WARN = Severity.WARNING
_SCOPES = ("ctx", "step", "iter")
_BACKOFFS = ("none", "linear", "exponential")


@dataclass(frozen=True, slots=True)
class ScopedChanges:
    """The changes of one `set`, by where they are written."""

    ctx: Template | None = None
    iter: Template | None = None


def condition_of(draft: PlaybookDraft, path: Path, value: Json) -> Template:
    """Compile a condition: a template, or a YAML boolean."""
    return Condition(draft.template(path, value))


def changes_of(draft: PlaybookDraft, value: Json, path: Path) -> ScopedChanges:
    """Compile a `set`: `iter.` is the row's, everything else the execution's."""
    ctx: dict[str, Template] = {}
    row: dict[str, Template] = {}
    for key, item in as_mapping(value).items():
        scope, dot, name = key.partition(".")
        if not dot or scope not in _SCOPES:
            scope, name = "ctx", key
        if dot and scope == "ctx" and name == key:
            hint = f"write {'.'.join(('ctx', key.partition('.')[2]))}, or a name without a dot"
            draft.report((*path, key), f"{key!r} is set as a variable of that name", hint, _WARN)
        (row if scope == "iter" else ctx)[name] = draft.template((*path, key), item)
    return ScopedChanges(NewValues(ctx) if ctx else None, NewValues(row) if row else None)


def rules_of(
    draft: PlaybookDraft, spec: Json, path: Path, label: str, labels: list[str]
) -> tuple[Rule, ...]:
    """Return the rules of the task `label`; `labels` are those of its pipeline, in order."""
    at = (*path, "spec", "policy", "rules")
    made: list[Rule] = []
    for place, rule in enumerate(as_list(as_mapping(as_mapping(spec).get("policy")).get("rules"))):
        if isinstance(rule, dict):
            found = _rule(draft, rule, (*at, place), _Targets(label, labels))
            if found is not None:
                made.append(found)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class _Targets:
    """The tasks a rule may jump to."""

    label: str
    labels: list[str]

    def named(self, to: Json) -> str | None:
        """Return the label that `to` names; `previous` is the task before this one."""
        if to == "previous":
            return self.labels[max(0, self.labels.index(self.label) - 1)]
        return to if isinstance(to, str) and to in self.labels else None


def _rule(draft: PlaybookDraft, rule: Authored, path: Path, targets: _Targets) -> Rule | None:
    when, verdict, at = None, rule.get("then"), (*path, "then")
    if "else" in rule:
        inner = rule["else"]
        verdict, at = as_mapping(inner).get("then"), (*path, "else", "then")
        if not isinstance(verdict, dict):
            hint = "write else: {then: …}"
            draft.report(path, "`else` without `then` has no effect", hint, _WARN)
            return None
    elif "when" in rule:
        when = condition_of(draft, (*path, "when"), rule["when"])
    if not isinstance(verdict, dict):
        draft.report(path, "a rule without `then` has no effect", "write then: {do: …}", _WARN)
        return None
    return _verdict(draft, verdict, at, when, targets)


def _verdict(
    draft: PlaybookDraft,
    verdict: Mapping[str, Json],
    path: Path,
    when: Template | None,
    targets: _Targets,
) -> Rule:
    do = next((one for one in Do if one == verdict.get("do")), Do.CONTINUE)
    changes = changes_of(draft, verdict.get("set"), (*path, "set"))
    to = targets.named(verdict.get("to")) if do is Do.JUMP else None
    if do is Do.JUMP and to is None:
        named = str(verdict.get("to"))
        hint = nearest(named, targets.labels) or f"there are {', '.join(targets.labels)}"
        draft.report((*path, "to"), f"there is no task {named!r} in this step", hint)
    backoff = str(verdict.get("backoff", "none"))
    return Rule(
        when=when,
        do=do,
        attempts=int(_number(verdict.get("attempts"), 3)),
        backoff=backoff if backoff in _BACKOFFS else "fixed",
        delay_s=_number(verdict.get("delay"), 1.0),
        to=to,
        set_iter=changes.iter,
        set_ctx=changes.ctx,
    )


def _number(value: Json, usual: float) -> float:
    try:
        return float(value) if isinstance(value, int | float | str) else usual
    except ValueError:
        return usual
