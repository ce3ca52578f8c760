"""Compiler of `eval` rules."""

from __future__ import annotations

from streams.events.model import Json
from streams.playbook.draft import PlaybookDraft
from streams.playbook.model import Do, Rule
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.template import Template
from streams.playbook.yaml_document import Authored, Path, as_list, as_mapping

_RETRY_KEYS = ("attempts", "backoff", "delay")


def rules_of(
    draft: PlaybookDraft, rules: Json, path: Path, labels: frozenset[str]
) -> tuple[Rule, ...]:
    """Return the rules of a task; `labels` are those of its pipeline, which it may jump to."""
    made: list[Rule] = []
    for place, rule in enumerate(as_list(rules)):
        here = (*path, place)
        if not isinstance(rule, dict):
            continue
        if made and made[-1].when is None:
            draft.report(here, "comes after `else`, so it is never followed")
        if ("expr" in rule) == ("else" in rule):
            draft.report(here, "has to begin with either `expr` or `else`")
        inner = rule.get("else")
        at = (*here, "else") if isinstance(inner, dict) else here
        when = draft.condition((*here, "expr"), rule["expr"]) if "expr" in rule else None
        made.append(_rule(draft, {**rule, **as_mapping(inner)}, at, when, labels))
    return tuple(made)


def _rule(
    draft: PlaybookDraft,
    verdict: Authored,
    path: Path,
    when: Template | None,
    labels: frozenset[str],
) -> Rule:
    do, to = verdict.get("do"), verdict.get("to")
    changes = {
        key: draft.changes(path, verdict, key) for key in ("set_iter", "set_vars", "set_ctx")
    }
    if do is None and not any(changes.values()):
        draft.report(path, "has no action", f"add do: {' | '.join(Do)}")
    known = next((one for one in Do if one == do), Do.CONTINUE)
    if known is Do.JUMP and to is None:
        draft.report(path, "jumps nowhere", "add `to` with the label of a task")
    elif to is not None and str(to) not in labels:
        hint = nearest(str(to), tuple(labels)) or f"there are {', '.join(sorted(labels))}"
        draft.report((*path, "to"), f"there is no task {to!r} in this step", hint)
    if known is not Do.RETRY:
        for key in _RETRY_KEYS:
            if key in verdict:
                what = f"{key!r} is for `do: retry` and has no meaning here"
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
