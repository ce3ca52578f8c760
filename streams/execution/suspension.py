"""The events by which an execution is suspended and resumed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from streams.errors import Refused
from streams.events.model import Event, NewEvent, Root


class AlreadySo(Refused):
    """The execution is what it was asked to become."""


def own_stream(root: Root) -> str:
    """Return the stream of what happens to the execution itself, not to its parts."""
    return f"{root.type}/{root.id}"


def is_suspended(own: Sequence[Event]) -> bool:
    """Say whether an execution's own events leave it suspended."""
    steered = [one for one in own if one.type in ("execution.suspended", "execution.resumed")]
    return bool(steered) and steered[-1].type == "execution.suspended"


def suspended(own: Sequence[Event], *, by: str, reason: str, now: datetime) -> NewEvent:
    """Return what suspends the execution whose own events these are.

    It expects to be the next of them: of two who suspend at once, one is told.

    Raises:
        AlreadySo: it is suspended.
    """
    if is_suspended(own):
        raise AlreadySo(f"{own[0].root} is suspended already; resume it or cancel it")
    return _next(own, "execution.suspended", now, {"by": by, "reason": reason})


def resumed(own: Sequence[Event], *, by: str, now: datetime) -> NewEvent:
    """Return what lets the execution go on.

    Raises:
        AlreadySo: it is not suspended.
    """
    if not is_suspended(own):
        raise AlreadySo(f"{own[0].root} is not suspended; there is nothing to resume")
    return _next(own, "execution.resumed", now, {"by": by})


def _next(own: Sequence[Event], type: str, now: datetime, meta: dict[str, str]) -> NewEvent:
    first, version = own[0], own[-1].stream_version
    return NewEvent(
        type=type,
        root=first.root,
        tenant_id=first.tenant_id,
        organization_id=first.organization_id,
        idempotency_key=f"{type}/{version}",
        event_time=now,
        meta=dict(meta),
        expected_version=version,
    )
