"""Suspending, resuming and cancelling an execution, by appends to its log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streams.events.model import Event, NewEvent, Root
from streams.execution.suspension import own_stream
from streams.log.errors import IdempotencyConflict, VersionConflict
from streams.log.port import EventStore

_TRIES = 5
Next = Callable[[Sequence[Event]], NewEvent]
"""Returns the next event for the execution's own events so far, or raises."""


async def steer(log: EventStore, root: Root, next_of: Next) -> int:
    """Append what `next_of` returns for an execution's own events, and return its `seq`.

    Raises:
        AlreadySo: the execution is already suspended, or not suspended.
        RootEnded: it has ended.
        VersionConflict, IdempotencyConflict: concurrent writers won every try.
    """
    for tries_left in reversed(range(_TRIES)):
        own = [event async for event in log.read_stream(root, own_stream(root))]
        try:
            return (await log.append([next_of(own)])).events[0].seq
        except (VersionConflict, IdempotencyConflict):
            if not tries_left:
                raise
    raise AssertionError("unreachable")


async def event_id_at(log: EventStore, root: Root, seq: int) -> int | None:
    """Return the id of a root's event at `seq`: the cause of a request's event."""
    async for event in log.read_root(root, after_seq=seq - 1, through_seq=seq):
        return event.event_id
    return None
