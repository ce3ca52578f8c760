"""What the last event of a command carries: small results themselves, references of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from streams.errors import Refused
from streams.events.model import Json, PayloadRef
from streams.payload.port import Scope
from streams.playbook.result_policy import USUAL
from streams.results.inline import is_inline, leaving
from streams.results.references import payload_of
from streams.worker.attempt.context import Attempt
from streams.worker.attempt.ctx_changes import told_changes
from streams.worker.attempt.events import fit
from streams.worker.attempt.pipeline import Left, Ran, Row
from streams.worker.attempt.result_meta import told_meta
from streams.worker.attempt.results import encode, plain
from streams.worker.attempt.views import Kept

EVENT_BYTES = 56 * 1024
"""What the event carries of results; the rest of its room is for the names of what left it."""
TASKS_BYTES = 12 * 1024
"""What the data of a step's other tasks may take of its event, all together."""


async def completed(attempt: Attempt, ran: Ran, row: Row) -> dict[str, Any]:
    """Return the fields of `command.completed`; whatever they refer to is durable by then."""
    result: dict[str, Any] = {"status": "success", "meta": told_meta(ran.meta)}
    result |= await told_changes(attempt, row.ctx)
    kept = await _tell(attempt, ran, row, result)
    return {"status": "success", "result": result, "payload_ref": _lasting(attempt, kept)}


async def failed(attempt: Attempt, ran: Ran, row: Row) -> dict[str, Any]:
    """Return the fields of `command.failed`: why, and what the tasks left until then."""
    error = ran.error or {}
    fields = failure(
        str(error.get("kind")), str(error.get("message")), str(error.get("task") or "")
    )
    try:
        result = fields["result"] | {"meta": told_meta(ran.meta)}
        kept = await _tell(attempt, ran, row, result)
    except Refused:
        return fields  # the reason matters more than what else there would be to tell
    return {**fields, "result": result, "payload_ref": _lasting(attempt, kept)}


def failure(kind: str, message: str, task: str = "") -> dict[str, Any]:
    """Return the fields of `command.failed` where there is nothing to tell but why."""
    said = fit(message)
    error = {"kind": fit(kind, 100), "message": said, "task": task}
    text = f"{task}: {error['kind']}: {said}" if task else said
    result = {"status": "error", "error": error, "meta": {}}
    return {"status": "error", "error": fit(text), "result": result}


async def _tell(attempt: Attempt, ran: Ran, row: Row, result: dict[str, Any]) -> Kept:
    """Put the data, and what other steps read of the tasks, into a result."""
    left = row.left or {}
    label = ran.task or attempt.item.tool
    last = left.get(label)
    room = min(_room(result), attempt.options.inline_bytes)
    kept = await _placed(attempt, label, ran.data, last, room)
    shown = _shown(ran.data, kept, last)
    result |= _fitting(shown, _room(result))
    if tasks := await _tasks(attempt, left, label, {"status": ran.status, **shown}):
        result |= await _told_tasks(attempt, tasks, _room(result))
    await attempt.results.tell()
    return kept


def _room(result: Mapping[str, Any]) -> int:
    return max(0, EVENT_BYTES - len(encode(result)))


async def _tasks(
    attempt: Attempt, left: Mapping[str, Left], last: str, own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the results of the tasks that other steps name; None stands for the step's own.

    A step can do well whose last task failed, where a rule goes on all the same; and fail where
    it did well, and its sink did not.
    """
    room = min(TASKS_BYTES, attempt.options.inline_bytes)
    told: dict[str, Any] = {}
    for label in [task.label for task in attempt.step.tasks if task.is_read]:
        if (one := left.get(label)) is None:
            continue
        outcome = one.outcome
        if label == last and outcome.status == own["status"]:
            told[label] = None
            continue
        here = own
        if label != last:
            kept = await _placed(attempt, label, outcome.data, one, room)
            room -= len(encode(outcome.data)) if kept.ref is None else 0
            here = _shown(outcome.data, kept, one)
        told[label] = {**here, "status": outcome.status, "meta": told_meta(outcome.meta)}
        if outcome.error is not None:
            told[label]["error"] = told_meta(outcome.error)
    return told


async def _told_tasks(attempt: Attempt, tasks: dict[str, Any], room: int) -> dict[str, Any]:
    """Return the fields that tell what tasks left; what does not fit is a payload, with names."""
    if len(encode(tasks)) <= room:
        return {"tasks": tasks}
    slim = {label: None if one is None else _slim(one) for label, one in tasks.items()}
    gone = leaving({label: encode(one) for label, one in slim.items() if one is not None}, room)
    if not gone:
        return {"tasks": slim}
    group = await attempt.results.group("tasks", {label: tasks[label] for label in gone})
    kept = {label: one for label, one in slim.items() if label not in set(gone)}
    return {"tasks": kept, "tasks_elsewhere": [group]}


async def _placed(attempt: Attempt, label: str, data: Json, left: Left | None, room: int) -> Kept:
    """Return where data is; what nobody placed yet goes into the event or the payload store."""
    kept = None if left is None else left.kept
    if kept is not None and kept.ref is not None:
        return kept
    # What a tool stored is told by a few names, and one of them is that of the result.
    is_told = left is not None and left.outcome.stored is not None and left.outcome.data is data
    if is_told or is_inline(encode(data), room):
        return kept or Kept({})
    policy = USUAL
    if left is not None and left.policy is not None:
        is_well = left.outcome.status == "success"  # of what failed, nothing is selected
        policy = left.policy.outside() if is_well else replace(left.policy.outside(), select=())
    return await attempt.results.store(label, policy, data, "end")


def _shown(data: Json, kept: Kept, left: Left | None) -> dict[str, Any]:
    """Return where the data is; `extracted` is there, if empty, where `spec.result` is."""
    is_asked = left is not None and left.kept is not None
    shown: dict[str, Any] = {"extracted": dict(kept.extracted)} if is_asked else {}
    if kept.ref is None:
        return {"data": plain(data), **shown}
    return {"ref": dict(kept.ref), **shown}


def _fitting(shown: dict[str, Any], room: int) -> dict[str, Any]:
    return shown if len(encode(shown)) <= room else _slim(shown)


def _slim(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return an envelope whose reference tells nothing that `result.stored` has, or it itself."""
    if (ref := envelope.get("ref")) is None:
        return envelope
    return {**envelope, "ref": {**ref, "preview": None, "extracted": {}}}


def _lasting(attempt: Attempt, kept: Kept) -> PayloadRef | None:
    """Return the payload of a result that never ends; one that does is known by its event only."""
    ref = kept.ref
    if ref is None or ref["scope"] != "permanent" or ref["expires_at"] is not None:
        return None
    return payload_of(ref, Scope(attempt.item.tenant_id, attempt.item.organization_id))
