"""A frame: a window of a stage's rows, and the progress of its attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias, assert_never

from streams.errors import Inconsistent
from streams.events.model import PayloadRef
from streams.events.types import (
    FrameAbandoned,
    FrameClaimed,
    FrameCommitted,
    FrameDispatched,
    FrameEvent,
    FrameFailed,
    FrameHeartbeat,
    FrameLeaseExpired,
    FrameReleased,
)
from streams.execution.fast_replace import copied
from streams.execution.json_object import JsonObject
from streams.execution.lease import Lease, expiry, lease_of
from streams.results.manifest import checkpoint_rows
from streams.results.spill import Group, groups_of

Cursor: TypeAlias = JsonObject
"""Bounds of a window; its keys depend on its `kind`."""


class FrameStatus(StrEnum):
    """State of a frame. FAILED, EXPIRED and RELEASED wait to be dispatched again."""

    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    RELEASED = "RELEASED"
    COMMITTED = "COMMITTED"
    ABANDONED = "ABANDONED"


CLAIMED, COMMITTED = FrameStatus.CLAIMED, FrameStatus.COMMITTED
"""Looking up a member takes five times as long."""
ENDED = frozenset((FrameStatus.COMMITTED, FrameStatus.ABANDONED))
IN_FLIGHT = frozenset((FrameStatus.PENDING, FrameStatus.CLAIMED))


@dataclass(frozen=True, kw_only=True)
class Frame:
    """`version` counts the events of its stream; `failures` the failed attempts."""

    frame_id: int
    stage_id: int
    loop_id: int
    step: str
    pool: str
    ordinal: int
    cursor: Cursor
    created_at: datetime
    changed_at: datetime
    attempt: int = 1
    version: int = 1
    failures: int = 0
    status: FrameStatus = FrameStatus.PENDING
    lease: Lease | None = None
    shard_id: str | None = None
    ctx: JsonObject | None = None
    """Changes of `ctx` by earlier rows of the stage, if its rows are ordered."""
    ctx_ref: PayloadRef | None = None
    ctx_elsewhere: list[Group] | None = None
    vars: JsonObject | None = None
    """Values of the step, set by earlier frames, if its rows are ordered."""
    row_count: int = 0
    """Rows that are done: those of its checkpoints, and of its commit."""
    failed_rows: int = 0
    continues: bool = False
    end_cursor: Cursor | None = None
    output: PayloadRef | None = None
    """The rows of its commit; those of checkpoints are in the manifest of its loop."""
    error: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether its status is final."""
        return self.status in ENDED


def absorb_frame(frame: Frame | None, event: FrameEvent, at: datetime) -> Frame:
    """Return the frame after one of its events."""
    if frame is None:
        return _dispatched(event, at)
    changes = _changes(frame, event, at)
    return copied(frame, version=frame.version + 1, changed_at=at, **changes)


def _changes(frame: Frame, event: FrameEvent, at: datetime) -> dict[str, object]:
    match event:
        case FrameClaimed():
            return {"status": CLAIMED, "lease": lease_of(event, at)}
        case FrameCommitted():
            return _committed(frame, event)
        case FrameHeartbeat():
            lease = lease_of(event, at)
            if event.cursor is None:
                return {"lease": lease}
            return {"lease": lease, **_checkpointed(frame, event, event.cursor)}
        case FrameDispatched():
            return {
                "status": FrameStatus.PENDING,
                "attempt": event.attempt,
                "cursor": event.cursor,
                "lease": None,
                "ctx": event.ctx,
                "ctx_ref": event.payload_ref,
                "ctx_elsewhere": groups_of(event.ctx_elsewhere) or None,
                "vars": event.vars,
            }
        case FrameReleased():
            cursor = frame.cursor if event.cursor is None else _moved(frame, event.cursor)
            return {"status": FrameStatus.RELEASED, "lease": None, "cursor": cursor}
        case FrameFailed() | FrameLeaseExpired() | FrameAbandoned():
            return _lost(frame, event)
        case _:
            assert_never(event)


def _lost(
    frame: Frame, event: FrameFailed | FrameLeaseExpired | FrameAbandoned
) -> dict[str, object]:
    if isinstance(event, FrameAbandoned):
        error = event.error or frame.error
        return {"status": FrameStatus.ABANDONED, "lease": None, "error": error}
    failures = frame.failures + 1
    if isinstance(event, FrameFailed):
        status, why = FrameStatus.FAILED, event.error
    else:
        status, why = FrameStatus.EXPIRED, expiry(event)
    return {"status": status, "failures": failures, "error": why, "lease": None}


def _dispatched(event: FrameEvent, at: datetime) -> Frame:
    if not isinstance(event, FrameDispatched):
        raise Inconsistent(
            f"frame {event.frame_id}: {event.TYPE} comes before the frame was dispatched; "
            "rebuild from the log"
        )
    return Frame(
        frame_id=event.frame_id,
        stage_id=event.stage_id,
        loop_id=event.loop_id,
        step=event.node_name,
        pool=event.pool,
        ordinal=event.ordinal,
        shard_id=event.shard_id,
        attempt=event.attempt,
        cursor=event.cursor,
        ctx=event.ctx,
        ctx_ref=event.payload_ref,
        ctx_elsewhere=groups_of(event.ctx_elsewhere) or None,
        vars=event.vars,
        created_at=at,
        changed_at=at,
    )


def _moved(frame: Frame, cursor: Cursor) -> Cursor:
    """Return a later cursor of a frame, which still continues the same frame."""
    if "continues" not in frame.cursor:
        return cursor
    return {**cursor, "continues": frame.cursor["continues"]}


def _checkpointed(frame: Frame, event: FrameHeartbeat, cursor: Cursor) -> dict[str, object]:
    return {
        "cursor": _moved(frame, cursor),
        "row_count": frame.row_count + checkpoint_rows(event),
        "failed_rows": frame.failed_rows + (event.failed_rows or 0),
    }


def _committed(frame: Frame, event: FrameCommitted) -> dict[str, object]:
    return {
        "status": COMMITTED,
        "lease": None,
        "row_count": frame.row_count + event.rows,
        "failed_rows": frame.failed_rows + event.failed_rows,
        "continues": event.continues,
        "end_cursor": event.cursor,
        "output": event.payload_ref,
        "error": None,
    }
