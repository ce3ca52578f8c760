"""Events of a worker and their idempotency keys."""

from __future__ import annotations

from datetime import datetime

from streams.events.model import NewEvent, Root
from streams.events.reading import EventColumns
from streams.events.text import shortened
from streams.execution.attempts import AttemptEvent, CommandAttempt, FrameAttempt
from streams.kafka.work.item import WorkItem
from streams.worker.attempt.secrets import concealed, concealed_value

ERROR_CHARS = 4_000


def attempt_of(item: WorkItem, worker: str) -> FrameAttempt | CommandAttempt:
    """Return the worker's attempt at an item."""
    if item.kind == "command":
        return CommandAttempt(
            command_id=item.entity_id,
            attempt=item.attempt,
            step=item.step,
            worker=worker,
            loop_id=item.loop_id,
        )
    return FrameAttempt(
        frame_id=item.entity_id,
        stage_id=item.stage_id or 0,
        loop_id=item.loop_id or 0,
        attempt=item.attempt,
        step=item.step,
        worker=worker,
        shard_id=item.shard_id,
    )


def attempt_event(
    item: WorkItem,
    event: AttemptEvent,
    *,
    version: int,
    turn: int,
    at: datetime,
    cause_id: int | None = None,
) -> NewEvent:
    """Return an event of an attempt, to append at `version` of the item's stream.

    Version and worker's turn are part of the idempotency key, and neither repeats: an event
    sent twice is stored once, and never mistaken for that of another attempt.
    """
    attempt = f"{item.entity_id}/{item.attempt}/{event.worker}/{version}.{turn}"
    return NewEvent(
        root=Root("execution", item.execution_id),
        tenant_id=item.tenant_id,
        organization_id=item.organization_id,
        idempotency_key=f"{event.TYPE}/{attempt}",
        event_time=at,
        causation_id=cause_id,
        catalog_id=item.catalog_id,
        expected_version=version,
        **_concealed(event.columns()),
    )


def _concealed(columns: EventColumns) -> EventColumns:
    """Return an event's columns without the secrets of its attempt."""
    if (context := columns.get("context")) is not None:
        columns["context"] = concealed_value(context)
    if (result := columns.get("result")) is not None:
        columns["result"] = concealed_value(result)
    if (error := columns.get("error")) is not None:
        columns["error"] = concealed(error)
    return columns


def fit(text: str, limit: int = ERROR_CHARS) -> str:
    """Return an error message shortened to what an event can carry."""
    return shortened(text or "no reason given", limit)
