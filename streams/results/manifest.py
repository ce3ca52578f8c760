"""Manifest of a loop: the payloads of its rows, in the order of its items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streams.events.model import Event, Json
from streams.events.types import FrameCommitted, FrameDispatched, FrameHeartbeat, typed
from streams.results.reading import RowsPart
from streams.results.reference import results_of

EVENTS = (FrameDispatched.TYPE, FrameHeartbeat.TYPE, FrameCommitted.TYPE)

_KINDS = (FrameDispatched, FrameHeartbeat, FrameCommitted)


def checkpoint_rows(event: FrameHeartbeat) -> int:
    """Return how many rows a checkpoint covers; early events only have their output's."""
    if event.rows is not None:
        return event.rows
    return (event.payload_ref.row_count or 0) if event.payload_ref is not None else 0


def parts_of(events: Iterable[Event], stage_id: int) -> list[RowsPart]:
    """Return the parts of a closed stage, given its frames' events in log order.

    A frame that closed early is followed by its continuation, and a checkpoint is a part of its
    own, followed by the rows after it. Failed rows are null; so are rows
    of a list that were never run.
    """
    of: str | None = None
    cursors: dict[int, dict[str, Json]] = {}
    ordinals: dict[int, int] = {}
    done: dict[int, list[RowsPart]] = {}
    committed: set[int] = set()
    for event in events:
        frame = typed(event) if event.type in EVENTS else None
        if frame is None or not isinstance(frame, _KINDS) or frame.stage_id != stage_id:
            continue
        if of is None and frame.node_name:
            of = results_of(event.root.id, frame.node_name)
        if isinstance(frame, FrameDispatched):
            ordinals.setdefault(frame.frame_id, frame.ordinal)
            cursors.setdefault(frame.frame_id, frame.cursor)
        elif isinstance(frame, FrameCommitted):
            committed.add(frame.frame_id)
            done.setdefault(frame.frame_id, []).append(RowsPart(frame.rows, frame.payload_ref, of))
        elif frame.cursor is not None:
            rows = checkpoint_rows(frame)
            done.setdefault(frame.frame_id, []).append(RowsPart(rows, frame.payload_ref, of))
    follows = {
        _whole(cursor["continues"]): frame_id
        for frame_id, cursor in cursors.items()
        if "continues" in cursor
    }
    parts: list[RowsPart] = []
    for frame_id in _in_order(ordinals, follows):
        found = done.get(frame_id, [])
        parts += found
        if frame_id not in committed:
            missing = _length(cursors[frame_id]) - sum(part.rows for part in found)
            parts.append(RowsPart(max(0, missing), None, of))
    return [part for part in parts if part.rows]


def _in_order(ordinals: dict[int, int], follows: dict[int, int]) -> Iterator[int]:
    later = set(follows.values())
    for first in sorted(ordinals.keys() - later, key=lambda one: ordinals[one]):
        frame: int | None = first
        while frame is not None:
            yield frame
            frame = follows.get(frame)


def _length(cursor: dict[str, Json]) -> int:
    if cursor.get("kind") != "list":
        return 0
    return _whole(cursor.get("to", 0)) - _whole(cursor.get("from", 0))


def _whole(value: Json) -> int:
    """Return an integer of a cursor; 64-bit ids are text in JSON."""
    return int(value) if isinstance(value, int | str) else 0
