"""Compiler of `loop`: lists and cursors, their frames and how many rows run at once."""

from __future__ import annotations

import json
from collections.abc import Mapping

from streams.events.model import Json
from streams.playbook.auth import AUTH, AUTH_KEYS
from streams.playbook.draft import PlaybookDraft
from streams.playbook.errors import ExpressionFailed
from streams.playbook.model import Cursor, FramePolicy, Loop, Mode
from streams.playbook.noetl.templates import Configuration
from streams.playbook.problem import Severity
from streams.playbook.template import Constant, Template
from streams.playbook.yaml_document import Authored, Path, as_mapping

MOST_ROWS = 100_000
_HINTS = ("policy",)
_PARTS = ("max_seconds", "max_bytes", "row_concurrency")
"""Limits by which the rows of a frame are divided."""
_LEASES = ("lease_seconds", "heartbeat_seconds")


class Listed:
    """The rows of `loop.in`: a list, a mapping, a number n (0 … n-1), or text (JSON or commas)."""

    __slots__ = ("_inner", "key_paths", "names")

    def __init__(self, inner: Template) -> None:
        self._inner, self.names, self.key_paths = inner, inner.names, inner.key_paths

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the rows."""
        value = self._inner.render(scope)
        if isinstance(value, str):
            value = _from_text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if not 0 <= value <= MOST_ROWS:
                raise ExpressionFailed("loop.in", f"gives {value}; use 0 to {MOST_ROWS}, or a list")
            return list(range(value))
        if value is None:
            raise ExpressionFailed("loop.in", "gives nothing; it must give a list")
        return value


def _from_text(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except ValueError:
        return [part.strip() for part in text.split(",") if part.strip()]
    return value if isinstance(value, list | dict | int) else [value]


def loop_of(draft: PlaybookDraft, step: Authored, path: Path) -> Loop | None:
    """Return the step's loop, if it has one."""
    loop = step.get("loop")
    if not isinstance(loop, dict):
        return None
    here = (*path, "loop")
    spec, cursor = as_mapping(loop.get("spec")), loop.get("cursor")
    if ("in" in loop) == isinstance(cursor, dict):
        draft.report(here, "a loop goes over either `in` or `cursor`", at_key=True)
    _report_inert(draft, spec, (*here, "spec"))
    iterator = str(loop.get("iterator", "item"))
    in_flight = _in_flight(draft, spec, (*here, "spec", "max_in_flight"))
    if isinstance(cursor, dict):
        fixed = in_flight.render({}) if isinstance(in_flight, Constant) else 1
        frame = as_mapping(spec.get("frame"))
        if in_flight is not None and not isinstance(in_flight, Constant):
            at = (*here, "spec", "max_in_flight")
            draft.report(at, "a cursor needs a number here, not a template")
        return Loop(
            iterator=iterator,
            mode=Mode.CURSOR,
            cursor=_cursor(draft, cursor, (*here, "cursor"), is_whole=_is_whole(frame)),
            max_in_flight=fixed if isinstance(fixed, int) else 1,
            policy=_frame_policy(draft, frame, (*here, "spec", "frame")),
            tolerates_failures=True,
        )
    if "frame" in spec:
        draft.report((*here, "spec", "frame"), "frames are for cursors", None, Severity.WARNING)
    return Loop(
        iterator=iterator,
        mode=_mode(spec),
        source=Listed(draft.template((*here, "in"), loop.get("in"))),
        rows_in_flight=in_flight,
    )


def _mode(spec: Authored) -> Mode:
    word = spec.get("mode", "sequential")
    return next((one for one in Mode if one == word and one is not Mode.CURSOR), Mode.SEQUENTIAL)


def _in_flight(draft: PlaybookDraft, spec: Authored, path: Path) -> Template | None:
    value = spec.get("max_in_flight")
    return None if value is None else draft.template(path, value)


def _report_inert(draft: PlaybookDraft, spec: Authored, path: Path) -> None:
    for key in _HINTS:
        if key in spec:
            what = f"{key!r} is a hint that no engine reads"
            draft.report((*path, key), what, None, Severity.NOTE, at_key=True)
    frame = as_mapping(spec.get("frame"))
    for key in _LEASES:
        if key in frame:
            what = f"{key!r} has no effect: leases are the deployment's"
            hint = "see `frames.lease_seconds` of the settings"
            draft.report((*path, "frame", key), what, hint, Severity.NOTE, at_key=True)
    for key in _PARTS if _is_whole(frame) else ():
        if frame.get(key, 1) != 1:
            what = f"{key!r} has no effect with process: frame: its rows are one call"
            draft.report((*path, "frame", key), what, None, Severity.NOTE, at_key=True)


def _is_whole(frame: Authored) -> bool:
    return frame.get("process") == "frame"


def _frame_policy(draft: PlaybookDraft, frame: Authored, path: Path) -> FramePolicy:
    seconds = _number(draft, frame, "max_seconds", path)
    size = _number(draft, frame, "max_bytes", path)
    return FramePolicy(
        size=int(_number(draft, frame, "max_rows", path) or 1),
        row_concurrency=int(_number(draft, frame, "row_concurrency", path) or 1),
        duration_ms=None if seconds is None else int(seconds * 1000),
        memory_bytes=None if size is None else int(size),
    )


def _number(draft: PlaybookDraft, frame: Authored, key: str, path: Path) -> float | None:
    """Return a limit of the frame, which may be a text of digits; None: it is not given."""
    value = frame.get(key)
    if isinstance(value, str) and value.strip().isdigit():
        return max(1, int(value))
    if value is None or isinstance(value, int | float):
        return value
    draft.report((*path, key), f"should be a number, not {value!r}")
    return None


def _cursor(draft: PlaybookDraft, cursor: Authored, path: Path, *, is_whole: bool) -> Cursor:
    parts: dict[str, Template] = {}
    for key, value in cursor.items():
        if key == "options":
            draft.report((*path, key), "'options' has no effect", None, Severity.WARNING)
        elif key != "kind":
            parts[AUTH if key in AUTH_KEYS else key] = draft.template((*path, key), value)
    config = Configuration(parts, {})
    kind = str(cursor.get("kind"))
    return Cursor(kind=kind, form="claim", config=config, is_fenced=True, is_whole=is_whole)
