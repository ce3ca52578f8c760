"""How templates see a result, between steps and inside them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COUNTS = ("total", "completed", "failed", "frames")
"""What a loop's result tells without its rows."""
IN_EVENT: Mapping[str, Any] = {"_ref": None, "_store": "eventlog", "_meta": {}, "_preview": None}
"""What a result with `spec.result` tells of its place where it is small enough for its event."""
_AT_HAND = frozenset(
    ("status", "meta", "error", "extracted", "preview", "_ref", "_store", "_meta", "_preview")
)
RESERVED = _AT_HAND | {"data", "result", "ref", "tasks", "counts"}
"""What no selected field may be called: templates would not find what they look for."""


def result_view(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a template sees under the name of a step or a task.

    `status`, `data` and `meta` are the envelope's, `result` is the envelope itself (of a loop:
    its rows), and the keys of a data mapping can be named directly where they are none of
    these. So can selected fields, a loop's counts, and the tasks of the step by their labels.
    """
    data = envelope.get("data")
    shown: dict[str, Any]
    if len(envelope) <= 3 and "ref" not in envelope:  # status, data and meta, as of a row's task
        shown = {**data, **envelope} if isinstance(data, dict) else dict(envelope)
        shown["result"] = envelope
        return shown
    shown = dict(IN_EVENT) if "extracted" in envelope else {}
    shown |= data if isinstance(data, dict) else {}
    for part in ("extracted", "counts"):
        shown |= envelope.get(part) or {}
    for label, one in (envelope.get("tasks") or {}).items():
        own = {k: v for k, v in envelope.items() if k != "tasks"}
        shown[label] = result_view(own if one is None else one)
    shown |= reference_view(envelope.get("ref"))
    shown |= envelope
    shown["result"] = envelope if "counts" not in envelope else data
    return shown


def reference_view(ref: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what templates see of a result reference; of a result without one, nothing."""
    if ref is None:
        return {}
    names = {"_ref": "ref", "_store": "store", "_meta": "meta", "_preview": "preview"}
    return {shown: ref.get(name) for shown, name in names.items()}


def wants_data(keys: Sequence[str], envelope: Mapping[str, Any]) -> bool:
    """Say whether following `keys` from a result's view leads into its data."""
    if not keys:
        return True
    first, rest = keys[0], keys[1:]
    tasks = envelope.get("tasks") or {}
    if first in tasks:
        return tasks[first] is None and wants_data(rest, envelope)
    if first == "result" and "counts" not in envelope:
        return wants_data(rest, envelope)
    at_hand = (_AT_HAND, envelope.get("extracted") or {}, envelope.get("counts") or {})
    return not any(first in names for names in at_hand)


def reads_rows(way: Sequence[str], step: str) -> bool:
    """Say whether a template that goes this way reads the rows of the loop `step`."""
    return way[0] == step and wants_data(way[1:], {"counts": COUNTS})


def reads_task(way: Sequence[str], step: str, label: str) -> bool:
    """Say whether a template that goes this way reads the result of a task of `step`."""
    return len(way) > 1 and way[0] == step and way[1] == label


def reads_loops_task(label: str) -> bool:
    """Say whether a loop's result has nothing of its own that is called like its task."""
    return label not in (*_AT_HAND, *COUNTS, "data", "result", "counts", "ref")
