"""A stage: one loop, fan-out or reduce step of an execution, and the frames it has open."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streams.envelope.model import PayloadRef
from streams.execution.change import copied
from streams.execution.fact import Fact, body, number, text
from streams.execution.frame import Frame, FrameStatus, absorb_frame

ERRORS_KEPT = 10


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Holds open frames only, so its size follows the window and not the rows.

    `minted` counts the windows handed out so far; `continuations` are places where frames
    that closed early want to go on.
    """

    stage_id: int
    loop_id: int
    step: str
    activation: int
    kind: str
    pool: str
    dsl_ref: str
    policy: dict[str, Any]
    source: dict[str, Any]
    opened_at: datetime
    document: dict[str, Any] | None = None
    document_ref: PayloadRef | None = None
    total_rows: int | None = None
    minted: int = 0
    frames_made: int = 0
    frames: dict[int, Frame] = field(default_factory=dict)
    continuations: dict[int, dict[str, Any]] = field(default_factory=dict)
    frames_done: int = 0
    rows_done: int = 0
    rows_failed: int = 0
    retries: int = 0
    is_exhausted: bool = False
    errors: tuple[dict[str, Any], ...] = ()
    failure: str | None = None
    status: str = "OPEN"
    ended_at: datetime | None = None


def open_stage(fact: Fact, at: datetime) -> Stage:
    """Return the stage that `stage.opened` begins."""
    context = body(fact.context)
    total = fact.meta.get("total_rows")
    return Stage(
        stage_id=number(fact, "stage_id"),
        loop_id=number(fact, "loop_id"),
        step=fact.node_name or "",
        activation=int(context.get("activation", 1)),
        kind=text(fact, "kind") or "loop",
        pool=text(fact, "pool") or "default",
        dsl_ref=text(fact, "dsl_ref") or "",
        policy=context.get("policy", {}),
        source=context.get("source", {}),
        document=context.get("document"),
        document_ref=fact.payload_ref,
        total_rows=None if total is None else int(total),
        opened_at=at,
    )


def absorb_in_stage(stage: Stage, fact: Fact, at: datetime) -> Stage:
    """Return the stage after an event of one of its frames."""
    frame_id = number(fact, "frame_id")
    known = stage.frames.get(frame_id)
    frame = absorb_frame(known, fact, at)
    frames = {**stage.frames, frame_id: frame}
    if known is None:
        stage = _minted(stage, frame)
    if frame.has_ended:
        del frames[frame_id]
        return _ended(copied(stage, frames=frames), frame)
    return copied(stage, frames=frames)


def close_stage(stage: Stage, fact: Fact, at: datetime) -> Stage:
    """Return the stage after `stage.closed`."""
    return copied(stage, status="CLOSED" if fact.status != "failed" else "FAILED", ended_at=at)


def _minted(stage: Stage, frame: Frame) -> Stage:
    continues = frame.cursor.get("continues")
    if continues is None:
        return copied(stage, minted=stage.minted + 1, frames_made=stage.frames_made + 1)
    rest = {k: v for k, v in stage.continuations.items() if str(k) != continues}
    return copied(stage, continuations=rest, frames_made=stage.frames_made + 1)


def _ended(stage: Stage, frame: Frame) -> Stage:
    if frame.status is FrameStatus.ABANDONED:
        why = f"frame {frame.ordinal} ({_window(frame)}) failed {frame.failures} times: "
        failure = stage.failure or why + (frame.error or "no reason was given")
        return copied(stage, frames_done=stage.frames_done + 1, failure=failure)
    result = frame.result or {}
    errors = (*stage.errors, *result.get("errors", ()))[:ERRORS_KEPT]
    continuations = stage.continuations
    if frame.continues and frame.end_cursor is not None:
        continuations = {**continuations, frame.frame_id: frame.end_cursor}
    return copied(
        stage,
        frames_done=stage.frames_done + 1,
        rows_done=stage.rows_done + frame.row_count - frame.failed_rows,
        rows_failed=stage.rows_failed + frame.failed_rows,
        retries=stage.retries + int(result.get("retries", 0)),
        is_exhausted=stage.is_exhausted or bool(result.get("exhausted")),
        errors=errors,
        continuations=continuations,
    )


def _window(frame: Frame) -> str:
    shown = {k: v for k, v in frame.cursor.items() if k not in ("kind", "continues")}
    return ", ".join(f"{name} {value}" for name, value in shown.items()) or "claimed rows"
