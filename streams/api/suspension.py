"""Suspending and resuming, decided on what the log has at that moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streams.events.model import Event, NewEvent, Root
from streams.execution.suspension import own_stream
from streams.log.errors import IdempotencyConflict, VersionConflict
from streams.log.port import EventStore

_TRIES = 5
Next = Callable[[Sequence[Event]], NewEvent]
"""Makes the next event from what happened to the execution itself, or says why there is none."""


async def steer(log: EventStore, root: Root, next_of: Next) -> int:
    """Append what `next_of` makes of an execution's own events, and return its `seq`.

    Raises:
        AlreadySo: the execution is suspended, or not, already.
        RootEnded: it has ended.
        VersionConflict, IdempotencyConflict: others keep changing it.
    """
    for tries_left in reversed(range(_TRIES)):
        own = [event async for event in log.read_stream(root, own_stream(root))]
        try:
            return (await log.append([next_of(own)])).events[0].seq
        except (VersionConflict, IdempotencyConflict):  # somebody was quicker
            if not tries_left:
                raise
    raise AssertionError("unreachable")
