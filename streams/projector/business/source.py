"""Rows of the sources: of the payloads that a step's frames returned, and of typed events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from streams.errors import PoisonRecord
from streams.events.model import Event, Json, PayloadRef
from streams.events.types import FrameCommitted, FrameHeartbeat, typed
from streams.payload.content import reference_json
from streams.payload.port import ARROW
from streams.playbook.declarations import event_columns
from streams.projector.business.core import EventDeltas, fold_rows, problem
from streams.projector.business.port import KeyedFold, SourceRow
from streams.results.reference import KIND

if TYPE_CHECKING:
    import pyarrow as pa

FRAME_OUTPUTS = (FrameHeartbeat.TYPE, FrameCommitted.TYPE)
"""Events with the rows of a step: a checkpoint has those before it, the commit those after."""


def reads_rows_of(fold: KeyedFold, event: Event) -> bool:
    """Return whether the projection counts the rows behind an event's payload."""
    source = fold.source
    return (
        source.kind == "step"
        and event.type in FRAME_OUTPUTS
        and event.node_name == source.name
        and event.payload_ref is not None
        and event.payload_ref.media_type == ARROW
    )


def fold_event(fold: KeyedFold, event: Event) -> EventDeltas | None:
    """Return what the fields of an event add to a projection; None: it is of another type."""
    source = fold.source
    if source.kind != "event" or event.type != source.name:
        return None
    values = event_row(event)
    return _folded(fold, event, [SourceRow(values, event.position, 0)], ())


def event_row(event: Event) -> dict[str, object]:
    """Return the fields of an event as a row."""
    values: dict[str, object] = {
        "execution_id": event.root.id,
        "event_id": event.event_id,
        "event_time": event.event_time,
    }
    known = typed(event)
    if known is not None:
        values |= {one.name: _plain(getattr(known, one.name)) for one in fields(known)}
    return {column: values.get(column) for column in event_columns(event.type)}


def fold_table(fold: KeyedFold, event: Event, table: pa.Table) -> EventDeltas:
    """Return what the rows of a payload add to a projection.

    Failed rows are null and count nowhere. Rows that are no objects have the one column `value`.
    """
    from streams.payload.arrow.rows import rows_of
    from streams.payload.arrow.values import unread

    try:
        found = rows_of(table, unread)
    except PoisonRecord as error:
        return lost_rows(event, error)
    rows, problems = list(_rows(event, found)), []
    stored = sum(isinstance(one, dict) and one.get("kind") == KIND for one in found)
    if stored:
        problems.append(problem(event, "rows that are stored as results of their own"))
    for column in sorted(fold.columns):
        if rows and not any(column in row.values for row in rows):
            problems.append(problem(event, f"rows without the column {column!r}"))
    return _folded(fold, event, rows, problems)


def lost_rows(event: Event, error: PoisonRecord) -> EventDeltas:
    """Return the problem of a payload that cannot be read: its rows are not counted."""
    what = f"rows of frame {event.meta.get('frame_id')} are missing ({type(error).__name__})"
    ref = event.payload_ref
    return EventDeltas({}, (problem(event, what, None if ref is None else ref.uri),))


def _rows(event: Event, found: Sequence[Json]) -> Iterator[SourceRow]:
    for index, one in enumerate(found):
        if isinstance(one, dict):
            if one.get("kind") != KIND:
                yield SourceRow(one, event.position, index)
        elif one is not None:
            yield SourceRow({"value": one}, event.position, index)


def _folded(
    fold: KeyedFold, event: Event, rows: Sequence[SourceRow], problems: Sequence[dict[str, Json]]
) -> EventDeltas:
    try:
        return EventDeltas(fold_rows(fold, rows), tuple(problems))
    except PoisonRecord as error:
        return EventDeltas({}, (*problems, problem(event, str(error))))


def _plain(value: object) -> object:
    return reference_json(value) if isinstance(value, PayloadRef) else value
