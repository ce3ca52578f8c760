"""What `command.completed` carries: small results themselves, references of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams.envelope.model import Json, PayloadRef
from streams.payload.inline import is_inline
from streams.payload.port import Scope
from streams.payload.results import payload_of
from streams.playbook.results import USUAL
from streams.worker.attempt import Attempt
from streams.worker.changes import told_changes
from streams.worker.pipeline import Left, Ran, Row
from streams.worker.results import encode, plain
from streams.worker.views import Kept

TASKS_BYTES = 12 * 1024
"""What the results of a step's other tasks may take of its event, all together."""


async def completed(attempt: Attempt, ran: Ran, row: Row) -> dict[str, Any]:
    """Return the fields of the event; whatever they refer to is durable by then."""
    result: dict[str, Any] = {"status": "success", "meta": plain(ran.meta)}
    result |= await told_changes(attempt, row.ctx)
    left = row.left or {}
    label = ran.task or attempt.item.tool
    kept = left[label].kept if label in left else None
    is_asked = kept is not None
    if kept is None or kept.ref is None:
        kept = await _placed(attempt, label, ran.data, kept, attempt.options.inline_bytes)
    result |= _shown(ran.data, kept, is_asked)
    if tasks := await _tasks(attempt, left, label):
        result["tasks"] = tasks
    await attempt.results.tell()
    return {"status": "success", "result": result, "payload_ref": _lasting(attempt, kept)}


async def _tasks(attempt: Attempt, left: Mapping[str, Left], last: str) -> dict[str, Any]:
    """Return the results of the tasks that other steps name; None stands for the step's own."""
    room = min(TASKS_BYTES, attempt.options.inline_bytes)
    told: dict[str, Any] = {}
    for label, one in left.items():
        if label == last:
            told[label] = None
            continue
        data, kept = one.outcome.data, one.kept
        is_asked = kept is not None
        if kept is None or kept.ref is None:
            kept = await _placed(attempt, label, data, kept, room)
        if kept.ref is None:
            room -= len(encode(data))
        told[label] = {
            "status": one.outcome.status,
            "meta": plain(one.outcome.meta),
            **_shown(data, kept, is_asked),
        }
    return told


async def _placed(attempt: Attempt, label: str, data: Json, kept: Kept | None, room: int) -> Kept:
    """Find a place for data that nobody placed yet: the event, or the payload store."""
    extracted = {} if kept is None else kept.extracted
    if is_inline(encode(data), room):
        return Kept(extracted)
    stored = await attempt.results.store(label, USUAL, data, "end")
    assert stored.ref is not None
    return Kept(extracted, {**stored.ref, "extracted": dict(extracted)})


def _shown(data: Json, kept: Kept, is_asked: bool) -> dict[str, Any]:
    """Return where the data is; `extracted` is there, if empty, where `spec.result` is."""
    shown: dict[str, Any] = {"extracted": dict(kept.extracted)} if is_asked else {}
    if kept.ref is None:
        return {"data": plain(data), **shown}
    return {"ref": dict(kept.ref), **shown}


def _lasting(attempt: Attempt, kept: Kept) -> PayloadRef | None:
    """Return the payload of a result that never ends; one that does is known by its event only."""
    ref = kept.ref
    if ref is None or ref["scope"] != "permanent" or ref["expires_at"] is not None:
        return None
    return payload_of(ref, Scope(attempt.item.tenant_id, attempt.item.organization_id))
