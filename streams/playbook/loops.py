"""The loop of a step: its rows, its mode, its frames."""

from __future__ import annotations

from streams.playbook.auth import AUTH, AUTH_KEYS, check_auth, default_credential
from streams.playbook.draft import PlaybookDraft
from streams.playbook.expressions import is_text
from streams.playbook.model import Cursor, FramePolicy, Loop, Mode
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.template import Constant, Template, mapping
from streams.playbook.tool_kinds import CURSORS
from streams.playbook.unread_keys import report_unread_cursor
from streams.playbook.yaml_document import Authored, Path, as_mapping


def loop_of(draft: PlaybookDraft, step: Authored, path: Path) -> Loop | None:
    """Return the step's loop, if it has one."""
    loop = step.get("loop")
    if not isinstance(loop, dict):
        return None
    here = (*path, "loop")
    if ("in" in loop) == ("cursor" in loop):
        what = "has both `in` and `cursor`" if "in" in loop else "has neither `in` nor `cursor`"
        draft.report(here, what, "a loop goes over a list (`in`) or a cursor", at_key=True)
    cursor = loop.get("cursor")
    made = _cursor(draft, cursor, (*here, "cursor")) if isinstance(cursor, dict) else None
    if made is not None and made.form == "claim":
        _report_unparted(draft, as_mapping(loop.get("frame_policy")), (*here, "frame_policy"))
    in_flight = as_mapping(loop.get("spec")).get("max_in_flight")
    return Loop(
        iterator=str(loop.get("iterator", "item")),
        mode=_mode(draft, step, loop, path),
        source=_source(draft, loop, here),
        cursor=made,
        max_in_flight=in_flight if isinstance(in_flight, int) else None,
        policy=_policy(loop),
    )


def _source(draft: PlaybookDraft, loop: Authored, path: Path) -> Template | None:
    if "in" not in loop:
        return None
    made = draft.template((*path, "in"), loop["in"])
    if is_text(made):
        hint = "write a list, or one expression that gives one: {{ … }}"
        draft.report((*path, "in"), "is a text, not a list", hint)
    return made


def _mode(draft: PlaybookDraft, step: Authored, loop: Authored, path: Path) -> Mode:
    """Return the mode of `loop.spec.mode`, or the step's `spec.loop_mode`."""
    found = {}
    for where, holder, key in (
        ((*path, "loop", "spec", "mode"), loop.get("spec"), "mode"),
        ((*path, "spec", "loop_mode"), step.get("spec"), "loop_mode"),
    ):
        word = as_mapping(holder).get(key)
        if isinstance(word, str) and word in tuple(Mode):
            found[where] = Mode(word)
    if len(set(found.values())) > 1:
        draft.report(next(iter(found)), "differs from spec.loop_mode", "give the mode once")
    usual = Mode.CURSOR if "cursor" in loop else Mode.SEQUENTIAL
    for where, mode in found.items():
        if (mode is Mode.CURSOR) != ("cursor" in loop):
            hint = "mode cursor goes with `cursor`, the other modes with `in`"
            draft.report(where, f"mode {mode} contradicts the loop's rows", hint)
    return next(iter(found.values()), usual)


def _policy(loop: Authored) -> FramePolicy | None:
    if "frame_policy" not in loop:
        return FramePolicy()
    policy = loop["frame_policy"]
    if not isinstance(policy, dict):
        return None
    given = ((key, policy.get(key)) for key in FramePolicy.__slots__)
    known = {key: value for key, value in given if isinstance(value, int)}
    return FramePolicy(**known)


def _report_unparted(draft: PlaybookDraft, policy: Authored, path: Path) -> None:
    """Warn of limits that end a frame early: claimed rows belong to their frame."""
    for key in ("duration_ms", "memory_bytes"):
        if key in policy:
            what = f"{key!r} has no effect on a claim: a frame runs all rows that it claimed"
            draft.report((*path, key), what, "lower `size`", Severity.WARNING, at_key=True)


def _cursor(draft: PlaybookDraft, cursor: Authored, path: Path) -> Cursor:
    kind = str(cursor.get("kind", ""))
    usual = CURSORS.get(kind, ())
    for key in cursor:
        known = (*usual, *AUTH_KEYS)
        if key != "kind" and usual and key not in known and (hint := nearest(key, usual)):
            what = f"{key!r} is not usual for a cursor of kind {kind}"
            draft.report((*path, key), what, hint, Severity.WARNING, at_key=True)
    report_unread_cursor(draft, cursor, path)
    parts: dict[str, Template] = {}
    for key, value in cursor.items():
        if key in AUTH_KEYS:
            check_auth(draft, (*path, key), key, cursor)
        if key != "kind":
            name = AUTH if key in AUTH_KEYS else key
            parts[name] = draft.template((*path, key), value)
    if kind == "postgres" and (only := default_credential(draft, cursor)) is not None:
        parts[AUTH] = Constant(only)
    form = _form(draft, kind, cursor, path)
    if kind == "postgres" and AUTH not in parts and "dsn" not in parts:
        draft.report(path, "a postgres cursor needs `auth` or `dsn`", at_key=True)
    return Cursor(kind=kind, form=form, config=mapping(parts))


def _form(draft: PlaybookDraft, kind: str, cursor: Authored, path: Path) -> str:
    if kind == "kafka":
        if "topic" not in cursor:
            draft.report(path, "a kafka cursor needs `topic`", at_key=True)
        return "offsets"
    if kind == "postgres":
        if ("claim" in cursor) == ("query" in cursor):
            hint = "`query` with `key` reads a table by its key; `claim` takes rows as it goes"
            draft.report(path, "a postgres cursor has either `query` or `claim`", hint, at_key=True)
        elif "query" in cursor and "key" not in cursor:
            hint = "name the column that orders the rows; unique and not null"
            draft.report(path, "`query` needs `key`", hint, at_key=True)
    return "claim" if "claim" in cursor else "keyset"
