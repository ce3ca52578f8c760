"""A stage: one loop, fan-out or reduce step, and its open frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from streams.events.model import PayloadRef
from streams.events.types import (
    FrameCommitted,
    FrameEvent,
    FrameHeartbeat,
    StageClosed,
    StageOpened,
)
from streams.execution.fast_replace import copied, settle
from streams.execution.frame import Cursor, Frame, absorb_frame
from streams.execution.json_object import JsonObject
from streams.results.spill import Group, groups_of, merged

MAX_ERRORS = 10


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Has open frames only, so its size depends on the window, not the rows.

    `minted` counts the windows created so far; `continuations` are cursors from which frames
    that closed early continue.
    """

    stage_id: int
    loop_id: int
    step: str
    activation: int
    kind: str
    pool: str
    dsl_ref: str
    policy: JsonObject
    source: JsonObject
    opened_at: datetime
    document: JsonObject | None = None
    document_ref: PayloadRef | None = None
    total_rows: int | None = None
    minted: int = 0
    frames_made: int = 0
    frames: dict[int, Frame] = field(default_factory=dict)
    continuations: dict[int, Cursor] = field(default_factory=dict)
    ctx: JsonObject = field(default_factory=dict)
    """Changes of `ctx` by its frames, if they are ordered."""
    ctx_elsewhere: list[Group] = field(default_factory=list)
    vars: JsonObject = field(default_factory=dict)
    """Values of the step, as its rules set them; the last commit wins."""
    unwell: frozenset[int] = frozenset()
    """Frames that closed early with failed rows, theirs or those of the frame they continued."""
    shards_done: int = 0
    shards_failed: int = 0
    frames_done: int = 0
    rows_done: int = 0
    rows_failed: int = 0
    retries: int = 0
    is_exhausted: bool = False
    errors: tuple[JsonObject, ...] = ()
    failure: str | None = None
    status: str = "OPEN"
    ended_at: datetime | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether each frame starts after the previous one has ended."""
        return bool(self.policy.get("window") == 1)


def open_stage(event: StageOpened, at: datetime) -> Stage:
    """Return the stage that `stage.opened` opens."""
    return Stage(
        stage_id=event.stage_id,
        loop_id=event.loop_id,
        step=event.node_name,
        activation=event.activation,
        kind=event.kind,
        pool=event.pool,
        dsl_ref=event.dsl_ref,
        policy=event.policy,
        source=event.source,
        document=event.document,
        document_ref=event.payload_ref,
        total_rows=event.total_rows,
        opened_at=at,
    )


def absorb_in_stage(stage: Stage, event: FrameEvent, at: datetime) -> Stage:
    """Return the stage after an event of one of its frames."""
    frame_id = event.frame_id
    known = stage.frames.get(frame_id)
    frame = absorb_frame(known, event, at)
    frames = {**stage.frames, frame_id: frame}
    stage = copied(stage, frames=frames)
    if known is None:
        stage = _minted(stage, frame)
    if frame.has_ended:
        del frames[frame_id]
        if isinstance(event, FrameCommitted):
            return _committed(stage, frame, event)
        return _abandoned(stage, frame)
    if isinstance(event, FrameHeartbeat) and event.cursor is not None:
        return _reported(stage, event)
    return stage


def close_stage(stage: Stage, event: StageClosed, at: datetime) -> Stage:
    """Return the stage after `stage.closed`."""
    return copied(stage, status="CLOSED" if event.status != "failed" else "FAILED", ended_at=at)


def _minted(stage: Stage, frame: Frame) -> Stage:
    continues = frame.cursor.get("continues")
    if continues is None:
        return settle(stage, minted=stage.minted + 1, frames_made=stage.frames_made + 1)
    rest = {k: v for k, v in stage.continuations.items() if str(k) != continues}
    return settle(stage, continuations=rest, frames_made=stage.frames_made + 1)


def _abandoned(stage: Stage, frame: Frame) -> Stage:
    why = f"frame {frame.ordinal} ({_window(frame)}) failed {frame.failures} times: "
    return settle(
        stage,
        frames_done=stage.frames_done + 1,
        rows_done=stage.rows_done + frame.row_count - frame.failed_rows,
        rows_failed=stage.rows_failed + frame.failed_rows,
        failure=stage.failure or why + (frame.error or "no error message"),
        shards_failed=stage.shards_failed + 1,
    )


def _committed(stage: Stage, frame: Frame, event: FrameCommitted) -> Stage:
    continuations = stage.continuations
    if frame.continues and frame.end_cursor is not None:
        continuations = {**continuations, frame.frame_id: frame.end_cursor}
    if stage.kind == "fanout":
        stage = _shard_ended(stage, frame)
    return settle(
        _reported(stage, event),
        frames_done=stage.frames_done + 1,
        rows_done=stage.rows_done + frame.row_count - frame.failed_rows,
        rows_failed=stage.rows_failed + frame.failed_rows,
        is_exhausted=_is_exhausted(stage, event),
        continuations=continuations,
    )


def _reported(stage: Stage, event: FrameCommitted | FrameHeartbeat) -> Stage:
    """Add what a commit or a checkpoint reports besides its counts."""
    changes, moved = event.ctx or {}, groups_of(event.ctx_elsewhere)
    if stage.is_ordered and (changes or moved):
        ctx, groups = merged(stage.ctx, stage.ctx_elsewhere, changes, moved)
        stage = settle(stage, ctx=ctx, ctx_elsewhere=groups)
    if event.vars:
        stage = settle(stage, vars={**stage.vars, **event.vars})
    return settle(
        stage,
        retries=stage.retries + (event.retries or 0),
        errors=(*stage.errors, *(event.errors or ()))[:MAX_ERRORS],
    )


def _is_exhausted(stage: Stage, event: FrameCommitted) -> bool:
    """Return whether nothing is left to claim.

    Where only an empty claim ends the loop, rows of a frame may have added more to claim.
    """
    if stage.source.get("until") == "empty":
        return bool(event.exhausted)
    return stage.is_exhausted or bool(event.exhausted)


def _shard_ended(stage: Stage, frame: Frame) -> Stage:
    """Count a shard when its last frame is committed; a failed row in any frame fails it."""
    before = frame.cursor.get("continues")
    is_unwell = frame.failed_rows > 0 or (before is not None and int(before) in stage.unwell)
    unwell = stage.unwell if before is None else stage.unwell - {int(before)}
    if frame.continues:
        return settle(stage, unwell=unwell | {frame.frame_id} if is_unwell else unwell)
    if is_unwell:
        return settle(stage, unwell=unwell, shards_failed=stage.shards_failed + 1)
    return settle(stage, unwell=unwell, shards_done=stage.shards_done + 1)


def _window(frame: Frame) -> str:
    shown = {k: v for k, v in frame.cursor.items() if k not in ("kind", "continues")}
    return ", ".join(f"{name} {value}" for name, value in shown.items()) or "claimed rows"
