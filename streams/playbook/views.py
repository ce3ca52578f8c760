"""Template views of results, between steps and within them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COUNTS = ("total", "completed", "failed", "frames")
"""Counts in a loop's result."""
IN_EVENT: Mapping[str, object] = {"_ref": None, "_store": "eventlog", "_meta": {}, "_preview": None}
"""Reference names of an inline result with `spec.result`."""
_OF_REFERENCE = {"_ref": "ref", "_store": "store", "_meta": "meta", "_preview": "preview"}
_INSIDE = frozenset(("ref", "_ref", "tasks"))
"""Fields of an envelope hidden from templates."""
_OF_LOOP = frozenset(("status", "meta", "error", "counts", *_OF_REFERENCE))
METHODS = frozenset(("get", "items", "values", "keys", "copy", "pop"))
"""Methods of a mapping: the key a template reads is not known from its path."""
RESERVED = _OF_LOOP | {"extracted", "data", "result"}
"""Reserved names for selected fields and tasks: templates would read something else."""

ASKED_BYTES = 16 * 2**20
"""Data up to this size is searched for keys that usually name something else."""


class _Named(dict[str, object]):
    """A view that also resolves the names of its reference, which are not its keys."""

    __slots__ = ("_names",)

    def __init__(self, view: Mapping[str, object], names: Mapping[str, object]) -> None:
        super().__init__(view)
        self._names = names

    def __missing__(self, key: str) -> object:
        return self._names[key]


def result_view(envelope: Mapping[str, Any]) -> dict[str, object]:
    """Return the view of a step's or task's result, whatever its size.

    `status`, `data` and `meta` are the envelope's, `result` is the envelope itself (of a loop:
    its rows), and other keys of a data mapping can be read directly. So can selected fields, a
    loop's counts, and the tasks of the step by label. The names of the reference exist only
    with `spec.result` or a loop.
    """
    data = envelope.get("data")
    view: dict[str, object]
    if len(envelope) <= 3 and "ref" not in envelope:  # status, data and meta, as of a row's task
        view = {**data, **envelope} if isinstance(data, dict) else dict(envelope)
        view["result"] = envelope
        return view
    view = dict(data) if isinstance(data, dict) else {}
    for part in ("extracted", "counts"):
        view |= envelope.get(part) or {}
    for label, one in (envelope.get("tasks") or {}).items():
        step = {k: v for k, v in envelope.items() if k != "tasks"}
        view[label] = result_view(step if one is None else one)
    names = reference_view(envelope.get("ref"))
    if is_asked := _is_asked(envelope):
        view |= {**IN_EVENT, **names} if "extracted" in envelope else names
    own = {k: v for k, v in envelope.items() if k not in _INSIDE}
    view |= own
    view["result"] = own if "counts" not in envelope else data
    return view if is_asked or not names else _Named(view, names)


def reference_view(ref: Mapping[str, object] | None) -> dict[str, object]:
    """Return the view of a result reference; empty without one."""
    if ref is None:
        return {}
    return {view: ref.get(name) for view, name in _OF_REFERENCE.items()}


def wants_data(keys: Sequence[str], envelope: Mapping[str, Any]) -> bool:
    """Return whether `keys` of a result's view read its data.

    If the view has no such key, only the data shows whether it exists. For names that other
    results have, such as `error`, data is read only up to a size: a check for failure must not
    fail because the task succeeded with much data.
    """
    if not keys or keys[0] == "data":
        return True
    first, rest = keys[0], keys[1:]
    if first == "result":
        return "counts" in envelope or wants_data(rest, envelope)
    if first in ("status", "meta") or (first in envelope and first not in _INSIDE):
        return False
    if first in (_OF_LOOP if "counts" in envelope else _OF_REFERENCE) and _is_asked(envelope):
        return False
    tasks = envelope.get("tasks") or {}
    if first in tasks:
        return tasks[first] is None and wants_data(rest, envelope)
    if first in RESERVED and _stored_bytes(envelope) > ASKED_BYTES:
        return False
    return not any(first in (envelope.get(part) or ()) for part in ("extracted", "counts"))


def _stored_bytes(envelope: Mapping[str, Any]) -> int:
    meta = (envelope.get("ref") or {}).get("meta") or {}
    return int(meta.get("bytes") or 0)


def _is_asked(envelope: Mapping[str, object]) -> bool:
    return "extracted" in envelope or "counts" in envelope


def wants_task(keys: Sequence[str], label: str, envelope: Mapping[str, Any]) -> bool:
    """Return whether `keys` of a step's view read the data of its task `label`.

    Reading the whole step includes its tasks.
    """
    if not keys or keys[0] in METHODS:
        return True
    return keys[0] == label and wants_data(keys[1:], envelope)


def reads_rows(way: Sequence[str], step: str) -> bool:
    """Return whether this key path reads the rows of the loop `step`."""
    return way[0] == step and wants_data(way[1:], {"counts": COUNTS})


def reads_task(way: Sequence[str], step: str, label: str) -> bool:
    """Return whether this key path reads the result of a task of `step`."""
    return len(way) > 1 and way[0] == step and way[1] == label


def reads_loops_task(label: str) -> bool:
    """Return whether the name is not one of a loop's own result fields."""
    return label not in (*_OF_LOOP, *COUNTS, "data", "result")
