"""Makes the manifest of a loop: the payloads of its rows, in the order of its items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streams.events.event_fields import Fact, body, number
from streams.results.reading import RowsPart
from streams.results.reference import results_of

EVENTS = ("frame.dispatched", "frame.committed")


def parts_of(facts: Iterable[Fact], stage_id: int) -> list[RowsPart]:
    """Return the parts of a closed stage, given its frames' events in the order of the log.

    A frame that closed early is followed by the one that went on from there. Rows that
    failed are null; so are those of a list that nobody got done.
    """
    of: str | None = None
    cursors: dict[int, dict[str, Any]] = {}
    ordinals: dict[int, int] = {}
    done: dict[int, RowsPart] = {}
    for fact in facts:
        if fact.type not in EVENTS or number(fact, "stage_id") != stage_id:
            continue
        frame_id = number(fact, "frame_id")
        if of is None and fact.node_name:
            of = results_of(fact.root.id, fact.node_name)
        if fact.type == "frame.dispatched":
            ordinals.setdefault(frame_id, number(fact, "ordinal"))
            cursors.setdefault(frame_id, body(body(fact.context).get("cursor")))
        else:
            done[frame_id] = RowsPart(number(fact, "rows"), fact.payload_ref, of)
    follows = {
        int(cursor["continues"]): frame_id
        for frame_id, cursor in cursors.items()
        if "continues" in cursor
    }
    parts = [
        done.get(frame_id) or RowsPart(_length(cursors[frame_id]), None, of)
        for frame_id in _in_order(ordinals, follows)
    ]
    return [part for part in parts if part.rows]


def _in_order(ordinals: dict[int, int], follows: dict[int, int]) -> Iterator[int]:
    later = set(follows.values())
    for first in sorted(ordinals.keys() - later, key=lambda one: ordinals[one]):
        frame: int | None = first
        while frame is not None:
            yield frame
            frame = follows.get(frame)


def _length(cursor: dict[str, Any]) -> int:
    if cursor.get("kind") != "list":
        return 0
    return int(cursor.get("to", 0)) - int(cursor.get("from", 0))
