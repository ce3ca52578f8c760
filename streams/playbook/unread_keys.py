"""Keys that nothing reads: each is an error or a warning that names it."""

from __future__ import annotations

from collections.abc import Mapping

from streams.playbook.auth import AUTH_KEYS
from streams.playbook.draft import PlaybookDraft
from streams.playbook.grammar import is_flat
from streams.playbook.problem import Severity
from streams.playbook.return_value import ENVELOPE_PARTS
from streams.playbook.shape import closest
from streams.playbook.spelling import Spelling
from streams.playbook.tool_kinds import CURSORS, USUAL, read_keys
from streams.playbook.yaml_document import Authored, Path, as_mapping

TASK_SPEC = ("result", "timeout_s", "rate")
"""Keys of a task's `spec` that have an effect."""
STEP_SPEC = ("loop_mode", "result")
_OF_ANY_TASK = ("kind", "eval", "spec", "sink", "action", "name")
REFUSED: Mapping[str, Mapping[str, str]] = {
    "python": {
        "memory_bytes": "the limit is that of the worker's processes, for all code",
        "module": "write an `import` into `code`",
        "function": "`code` calls it: `return my_function(...)`, or define `main`",
    },
    "kafka": {
        "auth": "records go to the deployment's own Kafka",
        "credential": "records go to the deployment's own Kafka",
        "credentialRef": "records go to the deployment's own Kafka",
        "bootstrap_servers": "records go to the deployment's own Kafka",
    },
    "playbook": {"return": "the called playbook's own `return` decides; select fields from it"},
}
_KAFKA_CURSOR = ("kind", "topic", "from", "to")


def report_unread_step(draft: PlaybookDraft, step: Authored, path: Path) -> None:
    """Report keys of a step that nothing reads."""
    if is_flat(step):
        return
    if "tool" in step:
        for key in ("eval", "action"):
            if key in step:
                hint = "put it into the task below `tool`"
                what = f"nothing reads {key!r} beside `tool`"
                draft.report((*path, key), what, hint, draft.new_error, at_key=True)
    _report_spec(draft, step.get("spec"), (*path, "spec"), STEP_SPEC)


def report_unread_task(draft: PlaybookDraft, kind: str, config: Authored, path: Path) -> None:
    """Report keys of a task that its tool does not read, and of its `spec`."""
    _report_spec(draft, config.get("spec"), (*path, "spec"), (*TASK_SPEC, "loop_mode"))
    limit = as_mapping(config.get("spec")).get("timeout_s", 1)
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        at = (*path, "spec", "timeout_s")
        draft.report(at, f"should be a number of seconds, not {limit!r}", None, draft.new_error)
    refused, read = REFUSED.get(kind, {}), read_keys(kind, Spelling.SPEC)
    login = AUTH_KEYS if "auth" in read else ()
    known = {*read, *_OF_ANY_TASK, *login} - refused.keys()
    for key in config:
        what = f"nothing reads {key!r} of {kind}"
        if (hint := refused.get(key)) is not None:
            draft.report((*path, key), what, hint, draft.new_error, at_key=True)
        elif read and key not in known and (key in USUAL[kind] or closest(key, known) is None):
            hint = f"it reads {', '.join(one for one in read if one not in refused)}"
            if key in USUAL[kind]:
                what += " in this spelling"
            draft.report((*path, key), what, hint, Severity.WARNING, at_key=True)


def report_unread_cursor(draft: PlaybookDraft, cursor: Authored, path: Path) -> None:
    """Report keys of a cursor that nothing reads."""
    kind = str(cursor.get("kind"))
    if kind == "kafka":
        for key in cursor:
            if key not in _KAFKA_CURSOR:
                hint = "it reads topic, from and to, from the deployment's own Kafka"
                what = f"nothing reads {key!r} of a kafka cursor"
                draft.report((*path, key), what, hint, draft.new_error, at_key=True)
        return
    known = CURSORS.get(kind, ())
    for key in cursor if known else ():
        if key not in (*known, *AUTH_KEYS, "kind") and closest(key, known) is None:
            what = f"nothing reads {key!r} of a {kind} cursor"
            hint = f"it reads {', '.join(known)}"
            draft.report((*path, key), what, hint, Severity.WARNING, at_key=True)


def report_unread_return(draft: PlaybookDraft, value: Authored) -> None:
    """Report keys of a returned envelope that are not part of one."""
    if value.get("status") not in ("success", "error") or "data" not in value:
        return
    for key in value:
        if key not in ENVELOPE_PARTS:
            hint = f"an envelope has {', '.join(ENVELOPE_PARTS)}; put it under `data`"
            what = f"nothing reads {key!r} of an envelope"
            draft.report(("return", key), what, hint, Severity.WARNING, at_key=True)


def _report_spec(draft: PlaybookDraft, spec: object, path: Path, known: tuple[str, ...]) -> None:
    given = as_mapping(spec) if isinstance(spec, dict) else {}
    for key in given:
        if key in known:
            continue
        near = closest(key, known)
        severity = Severity.WARNING if near is None else draft.new_error
        hint = f"it reads {', '.join(known)}" if near is None else f"did you mean {near!r}?"
        draft.report((*path, key), f"nothing reads {key!r} here", hint, severity, at_key=True)
