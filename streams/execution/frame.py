"""A frame: a window of a stage's rows, and how far an attempt at it has come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from streams.errors import Inconsistent
from streams.events.event_fields import Fact, body, number, text
from streams.events.model import PayloadRef
from streams.execution.fast_replace import copied
from streams.execution.lease import Lease, expiry, lease_of
from streams.results.spill import Group


class FrameStatus(StrEnum):
    """Where a frame is. FAILED, EXPIRED and RELEASED wait to be dispatched again."""

    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    RELEASED = "RELEASED"
    COMMITTED = "COMMITTED"
    ABANDONED = "ABANDONED"


ENDED = frozenset((FrameStatus.COMMITTED, FrameStatus.ABANDONED))
IN_FLIGHT = frozenset((FrameStatus.PENDING, FrameStatus.CLAIMED))


@dataclass(frozen=True, kw_only=True)
class Frame:
    """`version` counts the events of its stream; `failures` the attempts that ended badly."""

    frame_id: int
    stage_id: int
    loop_id: int
    step: str
    pool: str
    ordinal: int
    cursor: dict[str, Any]
    created_at: datetime
    changed_at: datetime
    attempt: int = 1
    version: int = 1
    failures: int = 0
    status: FrameStatus = FrameStatus.PENDING
    lease: Lease | None = None
    shard_id: str | None = None
    ctx: dict[str, Any] | None = None
    """What rows before it changed of `ctx` since its stage was opened, where rows have an order."""
    ctx_ref: PayloadRef | None = None
    ctx_elsewhere: list[Group] | None = None
    row_count: int = 0
    failed_rows: int = 0
    continues: bool = False
    end_cursor: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    output: PayloadRef | None = None
    error: str | None = None

    @property
    def has_ended(self) -> bool:
        """Say whether nothing more can happen to it."""
        return self.status in ENDED


def absorb_frame(frame: Frame | None, fact: Fact, at: datetime) -> Frame:
    """Return the frame after `fact`, one of its events."""
    if frame is None:
        return _dispatched(fact, at)
    change: dict[str, Any] = {"version": frame.version + 1, "changed_at": at}
    match fact.type:
        case "frame.dispatched":
            cursor = body(fact.context).get("cursor", frame.cursor)
            change |= {"status": FrameStatus.PENDING, "attempt": number(fact, "attempt")}
            change |= {"cursor": cursor, "lease": None}
            change |= {"ctx": body(fact.context).get("ctx"), "ctx_ref": fact.payload_ref}
            change["ctx_elsewhere"] = body(fact.context).get("ctx_elsewhere")
        case "frame.claimed":
            change |= {"status": FrameStatus.CLAIMED, "lease": lease_of(fact, at)}
        case "frame.heartbeat":
            change |= {"lease": lease_of(fact, at)}
            if (cursor := body(fact.context).get("cursor")) is not None:
                change["cursor"] = cursor
        case "frame.committed":
            change |= _committed(fact)
        case "frame.failed":
            change |= {"status": FrameStatus.FAILED, "failures": frame.failures + 1}
            change |= {"error": fact.error, "lease": None}
        case "frame.lease_expired":
            change |= {"status": FrameStatus.EXPIRED, "failures": frame.failures + 1, "lease": None}
            change["error"] = expiry(fact)
        case "frame.released":
            change |= {"status": FrameStatus.RELEASED, "lease": None}
            if (cursor := body(fact.context).get("cursor")) is not None:
                change["cursor"] = cursor
        case "frame.abandoned":
            change |= {"status": FrameStatus.ABANDONED, "lease": None}
            change["error"] = fact.error or frame.error
    return copied(frame, **change)


def _dispatched(fact: Fact, at: datetime) -> Frame:
    if fact.type != "frame.dispatched":
        raise Inconsistent(
            f"{fact.root}: {fact.type} comes before the frame was dispatched; rebuild from the log"
        )
    return Frame(
        frame_id=number(fact, "frame_id"),
        stage_id=number(fact, "stage_id"),
        loop_id=number(fact, "loop_id"),
        step=fact.node_name or "",
        pool=text(fact, "pool") or "default",
        ordinal=number(fact, "ordinal"),
        shard_id=text(fact, "shard_id"),
        attempt=number(fact, "attempt", 1),
        cursor=body(fact.context).get("cursor", {}),
        ctx=body(fact.context).get("ctx"),
        ctx_ref=fact.payload_ref,
        ctx_elsewhere=body(fact.context).get("ctx_elsewhere"),
        created_at=at,
        changed_at=at,
    )


def _committed(fact: Fact) -> dict[str, Any]:
    return {
        "status": FrameStatus.COMMITTED,
        "lease": None,
        "row_count": number(fact, "rows"),
        "failed_rows": number(fact, "failed_rows"),
        "continues": bool(fact.meta.get("continues")),
        "end_cursor": body(fact.context).get("cursor"),
        "result": body(fact.result),
        "output": fact.payload_ref,
        "error": None,
    }
