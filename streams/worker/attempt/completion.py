"""Last event of a command: small results inline, references to large ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from streams.errors import Refused
from streams.events.model import Json, PayloadRef
from streams.events.reading import json_of
from streams.payload.port import Scope
from streams.playbook.result_policy import USUAL
from streams.results.envelope import Envelope
from streams.results.limits import EVENT_BYTES, TASKS_BYTES
from streams.results.spill import encode_result, is_inline, normalized, oversized
from streams.worker.attempt.context import Attempt
from streams.worker.attempt.ctx_changes import serialize_ctx_changes, serialize_vars
from streams.worker.attempt.events import fit
from streams.worker.attempt.result_meta import serialize_meta
from streams.worker.attempt.row import PipelineRow, RowOutcome, TaskOutcome
from streams.worker.attempt.views import Placement


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """Content of the event that ends a command; with an `error` it is `command.failed`."""

    envelope: Envelope
    payload_ref: PayloadRef | None = None
    error: str | None = None


async def completed(attempt: Attempt, ran: RowOutcome, row: PipelineRow) -> CommandOutcome:
    """Return the outcome of a completed command; its payloads are durable."""
    envelope = Envelope({"status": "success", "meta": serialize_meta(ran.meta)})
    envelope = envelope.with_fields(**serialize_vars(row.vars))
    envelope = envelope.with_fields(**await serialize_ctx_changes(attempt, row.ctx))
    envelope, payload = await _with_results(attempt, ran, row, envelope)
    return CommandOutcome(envelope, payload)


async def failed(attempt: Attempt, ran: RowOutcome, row: PipelineRow) -> CommandOutcome:
    """Return the outcome of a failed command: the error, and the tasks' results so far."""
    error = ran.error or {}
    outcome = failure(
        str(error.get("kind")), str(error.get("message")), str(error.get("task") or "")
    )
    try:
        envelope = outcome.envelope.with_fields(meta=serialize_meta(ran.meta))
        envelope, payload = await _with_results(attempt, ran, row, envelope)
    except Refused:
        return outcome  # report the error even if the results cannot be stored
    return replace(outcome, envelope=envelope, payload_ref=payload)


def failure(kind: str, message: str, task: str = "") -> CommandOutcome:
    """Return the outcome of a command that failed without results."""
    reason = fit(message)
    error: dict[str, Json] = {"kind": fit(kind, 100), "message": reason, "task": task}
    text = f"{task}: {error['kind']}: {reason}" if task else reason
    envelope = Envelope({"status": "error", "error": error, "meta": {}})
    return CommandOutcome(envelope, error=fit(text))


async def _with_results(
    attempt: Attempt, ran: RowOutcome, row: PipelineRow, envelope: Envelope
) -> tuple[Envelope, PayloadRef | None]:
    """Return the envelope with data and task results that other steps read, and its payload."""
    outcomes = row.outcomes or {}
    label = ran.task or attempt.item.tool
    last = outcomes.get(label)
    room = min(_room(envelope), attempt.options.inline_bytes)
    placed = await _place(attempt, label, ran.data, last, room)
    own = _data_envelope(ran.data, placed, last)
    is_small = len(encode_result(own.fields)) <= _room(envelope)
    envelope = envelope.with_fields(**(own if is_small else own.slim()).fields)
    whole = Envelope({"status": ran.status, **own.fields})
    if tasks := await _task_envelopes(attempt, outcomes, label, whole):
        envelope = envelope.with_fields(**await _task_fields(attempt, tasks, _room(envelope)))
    await attempt.results.publish()
    return envelope, _permanent_payload(attempt, placed)


def _room(envelope: Envelope) -> int:
    return max(0, EVENT_BYTES - len(encode_result(envelope.fields)))


async def _task_envelopes(
    attempt: Attempt, outcomes: Mapping[str, TaskOutcome], last: str, own: Envelope
) -> dict[str, Envelope | None]:
    """Return the task results that other steps read; None stands for the step's own result.

    A step can succeed although its last task failed, if a rule continues; and fail although
    that task succeeded, if its sink failed.
    """
    room = min(TASKS_BYTES, attempt.options.inline_bytes)
    found: dict[str, Envelope | None] = {}
    for label in [task.label for task in attempt.step.tasks if task.is_read]:
        if (one := outcomes.get(label)) is None:
            continue
        outcome = one.outcome
        if label == last and outcome.status == own.status:
            found[label] = None
            continue
        envelope = own
        if label != last:
            placed = await _place(attempt, label, outcome.data, one, room)
            room -= len(encode_result(outcome.data)) if placed.reference is None else 0
            envelope = _data_envelope(outcome.data, placed, one)
        envelope = envelope.with_fields(status=outcome.status, meta=serialize_meta(outcome.meta))
        if outcome.error is not None:
            envelope = envelope.with_fields(error=serialize_meta(outcome.error))
        found[label] = envelope
    return found


async def _task_fields(
    attempt: Attempt, tasks: Mapping[str, Envelope | None], room: int
) -> dict[str, Json]:
    """Return the event's fields for the task results; those that do not fit are spilled."""
    whole: dict[str, Json] = {
        label: None if one is None else one.to_json() for label, one in tasks.items()
    }
    if len(encode_result(whole)) <= room:
        return {"tasks": whole}
    slim: dict[str, Json] = {
        label: None if one is None else one.slim().to_json() for label, one in tasks.items()
    }
    encoded = {label: encode_result(one) for label, one in slim.items() if one is not None}
    moved = oversized(encoded, room)
    if not moved:
        return {"tasks": slim}
    group = await attempt.results.spill("tasks", {label: whole[label] for label in moved})
    inline = {label: one for label, one in slim.items() if label not in set(moved)}
    return {"tasks": inline, "tasks_elsewhere": [json_of(group)]}


async def _place(
    attempt: Attempt, label: str, data: Json, task: TaskOutcome | None, room: int
) -> Placement:
    """Return where data is stored, storing it if it does not fit into the event."""
    placed = None if task is None else task.placed
    if placed is not None and placed.reference is not None:
        return placed
    # For a payload that a tool stored, the event has a few fields, the reference among them.
    is_named = task is not None and task.outcome.stored is not None and task.outcome.data is data
    if is_named or is_inline(encode_result(data), room):
        return placed or Placement({})
    policy = USUAL
    if task is not None and task.policy is not None:
        policy = task.policy.outside()
        if task.outcome.status != "success":  # nothing is selected from a failed result
            policy = replace(policy, select=())
    return await attempt.results.store(label, policy, data, "end")


def _data_envelope(data: Json, placed: Placement, task: TaskOutcome | None) -> Envelope:
    """Return the data's envelope; with `spec.result` it has `extracted`, even if empty."""
    fields: dict[str, Json]
    if placed.reference is None:
        fields = {"data": normalized(data)}
    else:
        fields = {"ref": placed.reference.to_json()}
    if task is not None and task.placed is not None:
        fields["extracted"] = dict(placed.extracted)
    return Envelope(fields)


def _permanent_payload(attempt: Attempt, placed: Placement) -> PayloadRef | None:
    """Return the payload of a result that never expires; others are referenced by event only."""
    if placed.reference is None or not placed.reference.is_permanent:
        return None
    return placed.reference.payload(Scope(attempt.item.tenant_id, attempt.item.organization_id))
