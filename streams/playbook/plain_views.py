"""Template views of results in NoETL's spelling: the plain values of tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streams.events.model import Json
from streams.playbook.plain_values import LoopValue

_OF_REFERENCE = {"_ref": "ref", "_store": "store", "_preview": "preview"}
REFERENCE_NAMES = frozenset((*_OF_REFERENCE, "_size_bytes"))
RESULTS = "results"
"""The name of a step's task results by label, or of a loop's rows."""
_SELF = ("data", "result")


def plain_view(envelope: Mapping[str, object]) -> object:
    """Return the view of a step's result: its value, with its tasks by label where it has some.

    The names of a reference exist only if the value was too large for its event.
    """
    if _is_loop(envelope):
        return _loop_view(envelope)
    data = envelope.get("data")
    if data is None and envelope.get("status") == "error":
        data = {"status": "error", "error": envelope.get("error")}
    labels = _labels(envelope)
    names = _reference_view(envelope)
    extracted = envelope.get("extracted")
    selected = extracted if isinstance(extracted, Mapping) else {}
    if not labels and not names and not selected:
        return data
    if data is not None and not isinstance(data, dict):
        return {**labels, RESULTS: labels, **names, "data": data} if labels or names else data
    own = data if isinstance(data, dict) else {}
    around: dict[str, object] = {**labels, RESULTS: labels} if labels else {}
    return {**around, **names, **selected, **own}


def _labels(envelope: Mapping[str, object]) -> dict[str, object]:
    tasks = envelope.get("tasks")
    if not isinstance(tasks, Mapping):
        return {}
    own = {name: one for name, one in envelope.items() if name != "tasks"}
    return {
        label: plain_view(one if isinstance(one, Mapping) else own) for label, one in tasks.items()
    }


def _reference_view(envelope: Mapping[str, object]) -> dict[str, object]:
    ref = envelope.get("ref")
    if not isinstance(ref, Mapping):
        return {}
    meta = ref.get("meta")
    size = meta.get("bytes") if isinstance(meta, Mapping) else None
    return {view: ref.get(name) for view, name in _OF_REFERENCE.items()} | {"_size_bytes": size}


def _is_loop(envelope: Mapping[str, object]) -> bool:
    meta = envelope.get("meta")
    return "counts" in envelope or (isinstance(meta, Mapping) and "loop_id" in meta)


def _loop_view(envelope: Mapping[str, object]) -> LoopValue:
    """Return a loop's rows and counts; without readers of its rows, its data are the counts."""
    rows = envelope.get("data")
    counts = envelope.get("counts", rows)
    known = counts if isinstance(counts, Mapping) else {}
    stats = {
        "total": known.get("total", 0),
        "success": known.get("completed", 0),
        "failed": known.get("failed", 0),
    }
    return LoopValue(results=rows if isinstance(rows, list) else [], stats=stats)


def wants_plain_data(keys: Sequence[str], envelope: Mapping[str, object]) -> bool:
    """Return whether `keys` of a plain view read the data of the result."""
    if not keys:
        return True
    first, rest = keys[0], keys[1:]
    if "counts" in envelope:
        return first != "stats"
    if first in _SELF:
        return not rest or wants_plain_data(rest, envelope)
    if first in REFERENCE_NAMES:
        return False
    tasks, extracted = envelope.get("tasks"), envelope.get("extracted")
    if isinstance(tasks, Mapping) and first in tasks:
        return tasks[first] is None
    return not (isinstance(extracted, Mapping) and first in extracted)


def wants_plain_task(keys: Sequence[str], label: str, envelope: Mapping[str, object]) -> bool:
    """Return whether `keys` of a step's plain view read the data of its task `label`."""
    own = without_results(keys)
    if not own:
        return True
    return own[0] == label and wants_plain_data(own[1:], envelope)


def without_results(keys: Sequence[str]) -> Sequence[str]:
    """Return the keys without a leading `results`, which names the tasks by label."""
    return keys[1:] if keys and keys[0] == RESULTS else keys


def reads_plain_rows(way: Sequence[str], step: str) -> bool:
    """Return whether this key path reads the rows of the loop `step`."""
    return way[0] == step and wants_plain_data(way[1:], {"counts": {}})


def reads_plain_task(way: Sequence[str], step: str, label: str) -> bool:
    """Return whether this key path reads the result of a task of `step`."""
    return way[0] == step and len(way) > 1 and tuple(without_results(way[1:]))[:1] in ((label,), ())


def flat_scope(
    *,
    workload: Mapping[str, Json],
    ctx: Mapping[str, Json],
    steps: Mapping[str, object],
    execution_id: str,
) -> dict[str, object]:
    """Return the names of an execution: inputs, then results of steps, then variables."""
    job = {"uuid": execution_id, "execution_id": execution_id, "id": execution_id}
    return {
        **workload,
        **steps,
        **ctx,
        "workload": workload,
        "ctx": {**workload, **ctx},
        "vars": {},
        "args": {},
        "iter": {},
        "execution_id": execution_id,
        "job": job,
    }


def row_names(iterator: str, item: Json, index: int, total: int | None) -> dict[str, object]:
    """Return the names of a loop's row besides its iterator."""
    is_last = total is not None and index == total - 1
    own = {"_index": index, "_first": index == 0, "_last": is_last, "_total": total}
    loop = {"index": index, "first": index == 0, "last": is_last, "length": total}
    return {"iter": {iterator: item, **own}, "loop_index": index, "loop": loop}
