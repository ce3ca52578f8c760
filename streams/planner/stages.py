"""Open stages: keeping the window of frames full, trying frames again, abandoning them."""

from __future__ import annotations

from datetime import datetime, timedelta

from streams.events.text import shortened
from streams.events.types import FrameAbandoned, FrameDispatched, FrameLeaseExpired, LoopItem
from streams.execution.frame import Cursor, Frame, FrameStatus
from streams.execution.stage import Stage
from streams.planner.draft import Draft
from streams.planner.leases import expiry_of
from streams.planner.stage_closing import close_stage, tolerates_failures
from streams.planner.windows import has_more, windows
from streams.results.spill import groups_json

_AGAIN = (FrameStatus.FAILED, FrameStatus.EXPIRED, FrameStatus.RELEASED)
_LONGEST_DELAY = timedelta(seconds=30)
_MOST_DOUBLINGS = 16


def advance_stage(draft: Draft, stage_id: int) -> None:
    """Draft what an open stage needs: expired leases, new attempts, new frames, its end."""
    for frame in list(_stage(draft, stage_id).frames.values()):
        _check_frame(draft, frame)
    step = draft.playbook.steps[_stage(draft, stage_id).step]
    stage = _stage(draft, stage_id)
    stopped = _is_stopped(draft, stage)
    if not stopped:
        _fill(draft, stage)
        stage = _stage(draft, stage_id)
    if not stage.frames and (stopped or not has_more(stage)):
        close_stage(draft, stage, step.name)


def _stage(draft: Draft, stage_id: int) -> Stage:
    return draft.plan.stages[stage_id]


def _is_stopped(draft: Draft, stage: Stage) -> bool:
    """Return whether no new window is started: there was a failure without `on_error`."""
    if draft.plan.failure is not None:
        return True
    if draft.playbook.steps[stage.step].on_error == "continue":
        return False
    return stage.failure is not None or (
        stage.rows_failed > 0 and not tolerates_failures(draft, stage.step)
    )


def _check_frame(draft: Draft, frame: Frame) -> None:
    """Draft the expiry of a lease, and the next attempt or the end of a failed frame."""
    rules, now = draft.moment.rules, draft.moment.now
    if frame.lease is not None and frame.status is FrameStatus.CLAIMED:
        if (why := expiry_of(frame.lease, draft.moment)) is None:
            return
        draft.emit(
            FrameLeaseExpired(
                node_name=frame.step,
                frame_id=frame.frame_id,
                stage_id=frame.stage_id,
                attempt=frame.attempt,
                worker=frame.lease.owner,
                reason=why.reason,
            ),
            f"{frame.frame_id}/{frame.attempt}",
            expected_version=frame.version,
        )
        frame = draft.plan.stages[frame.stage_id].frames[frame.frame_id]
    if frame.status not in _AGAIN:
        return
    if frame.failures >= rules.max_attempts:
        _abandon(draft, frame)
    elif (at := retry_at(frame, rules.retry_delay)) is None or now >= at:
        _dispatch(draft, frame.stage_id, frame.frame_id, frame.cursor, again=frame)


def retry_at(frame: Frame, delay: timedelta) -> datetime | None:
    """Return when a failed frame is dispatched again; None: at once, as after a hand-back.

    `changed_at` is from the log's clock: by a planner's clock that is behind, it may not have
    come yet. So every time that is returned here needs a wake-up.
    """
    if frame.status is not FrameStatus.FAILED:
        return None
    wait: timedelta = delay * 2 ** min(frame.failures - 1, _MOST_DOUBLINGS)
    return frame.changed_at + min(wait, _LONGEST_DELAY)


def _abandon(draft: Draft, frame: Frame) -> None:
    draft.emit(
        FrameAbandoned(
            node_name=frame.step,
            status="failed",
            error=None if frame.error is None else shortened(frame.error),
            frame_id=frame.frame_id,
            stage_id=frame.stage_id,
            loop_id=frame.loop_id,
            attempt=frame.attempt,
            shard_id=frame.shard_id,
        ),
        f"{frame.frame_id}",
        expected_version=frame.version,
    )


def _fill(draft: Draft, stage: Stage) -> None:
    """Draft frames until the window is full or all rows are dispatched."""
    room = int(stage.policy["window"]) - len(stage.frames)
    for frame_id, cursor in windows(draft, stage):
        if room <= 0:
            return
        _dispatch(draft, stage.stage_id, frame_id, cursor)
        room -= 1


def _dispatch(
    draft: Draft,
    stage_id: int,
    frame_id: int,
    cursor: Cursor,
    *,
    again: Frame | None = None,
) -> None:
    stage = _stage(draft, stage_id)
    ordinal = stage.frames_made if again is None else again.ordinal
    attempt = 1 if again is None else again.attempt + 1
    is_shard = stage.kind == "fanout"
    ctx, ref = draft.externalize(stage.ctx) if stage.ctx else (None, None)
    draft.emit(
        FrameDispatched(
            node_name=stage.step,
            frame_id=frame_id,
            stage_id=stage_id,
            loop_id=stage.loop_id,
            attempt=attempt,
            ordinal=ordinal,
            pool=stage.pool,
            shard_id=str(frame_id) if is_shard else None,
            iter_index=ordinal if is_shard else None,
            cursor=cursor,
            ctx=ctx,
            ctx_elsewhere=groups_json(stage.ctx_elsewhere or None),
            vars=stage.vars or None if stage.is_ordered else None,
            payload_ref=ref,
        ),
        f"{frame_id}/{attempt}",
        expected_version=0 if again is None else again.version,
        current_index=ordinal if is_shard else _first_row(stage, cursor, ordinal),
    )
    if again is None and not is_shard and stage.policy.get("size") == 1:
        _item(draft, stage, cursor, ordinal)


def _first_row(stage: Stage, cursor: Cursor, ordinal: int) -> int:
    """Return the number of a frame's first row in its collection."""
    if cursor.get("kind") == "claim" and "first" not in cursor:
        return ordinal * int(stage.policy["size"])
    return int(cursor.get("from" if cursor.get("kind") == "list" else "first") or 0)


def _item(draft: Draft, stage: Stage, cursor: Cursor, ordinal: int) -> None:
    """Draft `loop.item` of a frame of one row, with the row if the document has it inline."""
    index = _first_row(stage, cursor, ordinal)
    items = (stage.document or {}).get("items")
    item = items[index] if isinstance(items, list) and index < len(items) else None
    draft.emit(
        LoopItem(
            node_name=stage.step,
            status="dispatched",
            loop_id=stage.loop_id,
            iter_index=index,
            current_item=item,
        ),
        f"{stage.loop_id}/{index}",
        current_index=index,
    )
