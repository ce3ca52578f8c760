"""A stage: one loop, fan-out or reduce step of an execution, and the frames it has open."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streams.events.event_fields import Fact, body, number, text
from streams.events.model import PayloadRef
from streams.execution.fast_replace import copied
from streams.execution.frame import Frame, FrameStatus, absorb_frame
from streams.results.spill import Group, merged

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
    ctx: dict[str, Any] = field(default_factory=dict)
    """What its frames have changed of `ctx`, where they follow one another."""
    ctx_elsewhere: list[Group] = field(default_factory=list)
    unwell: frozenset[int] = frozenset()
    """Frames that closed early with failed rows, theirs or those of the frame they continued."""
    shards_done: int = 0
    shards_failed: int = 0
    frames_done: int = 0
    rows_done: int = 0
    rows_failed: int = 0
    retries: int = 0
    is_exhausted: bool = False
    errors: tuple[dict[str, Any], ...] = ()
    failure: str | None = None
    status: str = "OPEN"
    ended_at: datetime | None = None

    @property
    def is_ordered(self) -> bool:
        """Say whether each frame begins after the one before it has ended."""
        return bool(self.policy.get("window") == 1)


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
        failed = stage.shards_failed + 1
        return copied(
            stage, frames_done=stage.frames_done + 1, failure=failure, shards_failed=failed
        )
    result = frame.result or {}
    errors = (*stage.errors, *result.get("errors", ()))[:ERRORS_KEPT]
    continuations = stage.continuations
    if frame.continues and frame.end_cursor is not None:
        continuations = {**continuations, frame.frame_id: frame.end_cursor}
    if stage.kind == "fanout":
        stage = _shard_ended(stage, frame)
    changes, moved = result.get("ctx") or {}, result.get("ctx_elsewhere") or []
    if stage.is_ordered and (changes or moved):
        ctx, groups = merged(stage.ctx, stage.ctx_elsewhere, changes, moved)
        stage = copied(stage, ctx=ctx, ctx_elsewhere=groups)
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


def _shard_ended(stage: Stage, frame: Frame) -> Stage:
    """Count a shard when its last part is committed; one failed row in any part fails it."""
    before = frame.cursor.get("continues")
    is_unwell = frame.failed_rows > 0 or (before is not None and int(before) in stage.unwell)
    unwell = stage.unwell if before is None else stage.unwell - {int(before)}
    if frame.continues:
        return copied(stage, unwell=unwell | {frame.frame_id} if is_unwell else unwell)
    if is_unwell:
        return copied(stage, unwell=unwell, shards_failed=stage.shards_failed + 1)
    return copied(stage, unwell=unwell, shards_done=stage.shards_done + 1)


def _window(frame: Frame) -> str:
    shown = {k: v for k, v in frame.cursor.items() if k not in ("kind", "continues")}
    return ", ".join(f"{name} {value}" for name, value in shown.items()) or "claimed rows"
