"""Events that suspend and resume an execution. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from streams.errors import Refused
from streams.events.model import Event, NewEvent, Root
from streams.events.types import ExecutionResumed, ExecutionSuspended

_SUSPENSION_TYPES = (ExecutionSuspended.TYPE, ExecutionResumed.TYPE)


class AlreadySo(Refused):
    """The execution is already suspended, or not suspended."""


def own_stream(root: Root) -> str:
    """Return the stream of the execution's own events, without those of its parts."""
    return f"{root.type}/{root.id}"


def is_suspended(own: Sequence[Event]) -> bool:
    """Return whether an execution is suspended, by its own events."""
    changes = [one for one in own if one.type in _SUSPENSION_TYPES]
    return bool(changes) and changes[-1].type == ExecutionSuspended.TYPE


def suspended(own: Sequence[Event], *, by: str, reason: str, now: datetime) -> NewEvent:
    """Return the event that suspends the execution with these events of its own.

    It has an expected version: of two concurrent requests, one is refused.

    Raises:
        AlreadySo: it is suspended.
    """
    if is_suspended(own):
        raise AlreadySo(f"{own[0].root} is already suspended; resume it or cancel it")
    return _next(own, ExecutionSuspended(by=by, reason=reason), now)


def resumed(own: Sequence[Event], *, by: str, now: datetime) -> NewEvent:
    """Return the event that resumes the execution.

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
        causation_id=own[-1].event_id,
        expected_version=version,
        **event.columns(),
    )
