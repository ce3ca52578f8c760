"""The events by which an execution is suspended and resumed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from streams.errors import Refused
from streams.events.model import Event, NewEvent, Root
from streams.events.types import ExecutionResumed, ExecutionSuspended

_STEERING = (ExecutionSuspended.TYPE, ExecutionResumed.TYPE)


class AlreadySo(Refused):
    """The execution is what it was asked to become."""


def own_stream(root: Root) -> str:
    """Return the stream of what happens to the execution itself, not to its parts."""
    return f"{root.type}/{root.id}"


def is_suspended(own: Sequence[Event]) -> bool:
    """Say whether an execution's own events leave it suspended."""
    steered = [one for one in own if one.type in _STEERING]
    return bool(steered) and steered[-1].type == ExecutionSuspended.TYPE


def suspended(own: Sequence[Event], *, by: str, reason: str, now: datetime) -> NewEvent:
    """Return what suspends the execution whose own events these are.

    It expects to be the next of them: of two who suspend at once, one is refused.

    Raises:
        AlreadySo: it is suspended.
    """
    if is_suspended(own):
        raise AlreadySo(f"{own[0].root} is suspended already; resume it or cancel it")
    return _next(own, ExecutionSuspended(by=by, reason=reason), now)


def resumed(own: Sequence[Event], *, by: str, now: datetime) -> NewEvent:
    """Return what lets the execution go on.

    Raises:
        AlreadySo: it is not suspended.
    """
    if not is_suspended(own):
        raise AlreadySo(f"{own[0].root} is not suspended; there is nothing to resume")
    return _next(own, ExecutionResumed(by=by), now)


def _next(
    own: Sequence[Event], event: ExecutionSuspended | ExecutionResumed, now: datetime
) -> NewEvent:
    first, version = own[0], own[-1].stream_version
    return NewEvent(
        root=first.root,
        tenant_id=first.tenant_id,
        organization_id=first.organization_id,
        idempotency_key=f"{event.TYPE}/{version}",
        event_time=now,
        expected_version=version,
        **event.columns(),
    )
