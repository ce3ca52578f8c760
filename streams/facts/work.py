"""Work on frames and commands: which worker held them, for how long, with what outcome. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

from streams.events.types import (
    AnyEvent,
    CommandCancelled,
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandLeaseExpired,
    CommandReleased,
    FrameAbandoned,
    FrameClaimed,
    FrameCommitted,
    FrameFailed,
    FrameHeartbeat,
    FrameLeaseExpired,
    FrameReleased,
)

_NONE = timedelta()


class Work(NamedTuple):
    """The work on one frame or command so far."""

    worker: str | None = None
    """Who claimed it last."""
    claimed_at: datetime | None = None
    """When that was."""
    is_held: bool = False
    held: timedelta = _NONE
    """How long workers held it, without the time since the last claim if that lasts."""
    retries: int = 0
    output_bytes: int = 0


NO_WORK = Work()
Works: TypeAlias = Mapping[int, Work]
_CLAIMS = (FrameClaimed, CommandClaimed)
_REPORTS = (FrameCommitted, FrameHeartbeat)
_OF_COMMANDS = (
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandLeaseExpired,
    CommandReleased,
    CommandCancelled,
)
_OF_FRAMES = (
    FrameClaimed,
    FrameHeartbeat,
    FrameCommitted,
    FrameFailed,
    FrameLeaseExpired,
    FrameReleased,
    FrameAbandoned,
)


def worked(works: Works, known: AnyEvent | None, at: datetime) -> tuple[Works, timedelta]:
    """Return the works after an event at `at`, and for how long a worker held what it released."""
    if not isinstance(known, _OF_COMMANDS + _OF_FRAMES):
        return works, _NONE
    key = known.command_id if isinstance(known, _OF_COMMANDS) else known.frame_id
    before = work = works.get(key, NO_WORK)
    if isinstance(known, _CLAIMS):
        work = work._replace(worker=known.worker, claimed_at=at, is_held=True)
    if isinstance(known, _REPORTS):
        size = 0 if known.payload_ref is None else known.payload_ref.byte_length
        work = work._replace(
            retries=work.retries + (known.retries or 0), output_bytes=work.output_bytes + size
        )
    held = _NONE
    if not isinstance(known, (*_CLAIMS, FrameHeartbeat)):
        work, held = _released(work, at)
    return (works if work is before else {**works, key: work}), held


def ended_works(works: Works, at: datetime) -> tuple[Works, timedelta]:
    """Return the works of an execution that ended at `at`, and how long held ones were held."""
    after, held = {}, _NONE
    for key, work in works.items():
        after[key], since = _released(work, at)
        held += since
    return after, held


def _released(work: Work, at: datetime) -> tuple[Work, timedelta]:
    if not work.is_held or work.claimed_at is None:
        return work, _NONE
    held = max(at - work.claimed_at, _NONE)
    return work._replace(is_held=False, held=work.held + held), held
