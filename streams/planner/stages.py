"""Stages: opening a loop, keeping its window full, trying again, closing it."""

from __future__ import annotations

from datetime import datetime, timedelta

from streams.events.model import Json, PayloadRef
from streams.events.text import shortened
from streams.events.types import (
    FrameAbandoned,
    FrameDispatched,
    FrameLeaseExpired,
    LoopCounts,
    LoopDone,
    LoopFaninCompleted,
    LoopFanoutStarted,
    LoopStarted,
    LoopStartedMode,
    StageClosed,
    StageOpened,
)
from streams.execution.command import Command
from streams.execution.frame import Cursor, Frame, FrameStatus
from streams.execution.plan import Activation
from streams.execution.stage import Stage
from streams.ids import derive_id
from streams.payload.content import reference_json
from streams.planner.draft import Draft, stored_for_good
from streams.planner.leases import expiry_of
from streams.planner.scope import holds, input_of, render
from streams.planner.steps import StepEnding, issue, leave
from streams.planner.windows import has_more, windows
from streams.playbook.errors import ExpressionFailed
from streams.playbook.model import Loop, Mode
from streams.results.reading import MANIFEST
from streams.results.reference import ResultRef
from streams.results.spill import groups_json

_AGAIN = (FrameStatus.FAILED, FrameStatus.EXPIRED, FrameStatus.RELEASED)
_MODES: dict[Mode, LoopStartedMode] = {
    Mode.SEQUENTIAL: "sequential",
    Mode.PARALLEL: "parallel",
    Mode.CURSOR: "cursor",
    Mode.FANOUT: "fanout",
}
_LONGEST_DELAY = timedelta(seconds=30)


def start_loop(draft: Draft, activation: Activation, loop: Loop) -> None:
    """Draft what an entered loop step does first: its stage, or a search for its frames."""
    step = draft.playbook.steps[activation.step]
    try:
        if not holds(step.when, draft.plan, draft.moment, activation):
            leave(draft, activation, StepEnding(status="skipped"))
        elif loop.cursor is not None and loop.cursor.form != "claim":
            policy = _policy(draft, loop)
            issue(draft, activation, "cursor.plan", step.pool, {"size": policy["size"]})
        elif loop.cursor is not None:
            _open(draft, activation, loop, {"kind": "claim"}, None, None)
        else:
            items = _items(render_source(draft, activation, loop), step.name)
            _open(draft, activation, loop, {"kind": "list"}, len(items), items)
    except ExpressionFailed as error:
        leave(draft, activation, StepEnding(status="error", error=f"step {step.name}: {error}"))


def after_planning(draft: Draft, activation: Activation, loop: Loop, command: Command) -> None:
    """Draft the stage of a cursor whose frames were found."""
    if command.error is not None:
        why = f"step {command.step}: its rows could not be found: {command.error}"
        leave(draft, activation, StepEnding(status="error", error=why))
        return
    if command.output is not None:
        found = draft.moment.known.payload(command.output)
    else:
        found = (None if command.result is None else command.result.data) or {}
    assert loop.cursor is not None
    name = "boundaries" if loop.cursor.form == "keyset" else "ranges"
    listed, ref = draft.externalize(found[name])
    source: dict[str, Json] = {"kind": loop.cursor.form, "count": len(found[name])}
    source |= {name: listed} if ref is None else {f"{name}_ref": reference_json(ref)}
    if "type" in found:
        source["type"] = found["type"]
    _open(draft, activation, loop, source, int(found.get("rows", 0)), None)


def render_source(draft: Draft, activation: Activation, loop: Loop) -> Json:
    """Return the value of `loop.in`."""
    assert loop.source is not None
    return render(loop.source, draft.plan, draft.moment, activation)


def _items(value: Json, step: str) -> list[Json]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [{"key": key, "value": each} for key, each in value.items()]
    raise ExpressionFailed(
        "loop.in", f"gives {type(value).__name__} in step {step!r}; it must give a list"
    )


def _policy(draft: Draft, loop: Loop) -> dict[str, int]:
    rules = draft.moment.rules
    kind = "fanout" if loop.mode is Mode.FANOUT else "loop"
    policy = dict(rules.policies[kind])
    if loop.policy is None:
        policy["size"] = 1
    else:
        asked = {name: getattr(loop.policy, name) for name in loop.policy.__slots__}
        policy |= {name: value for name, value in asked.items() if value is not None}
    policy["window"] = loop.max_in_flight or rules.window
    if loop.mode is Mode.SEQUENTIAL:
        policy |= {"window": 1, "parallelism": 1, "row_concurrency": 1}
    policy["size"] = policy["size"] or 1_000
    return policy


def _open(
    draft: Draft,
    activation: Activation,
    loop: Loop,
    source: dict[str, Json],
    total: int | None,
    items: list[Json] | None,
) -> None:
    plan, step = draft.plan, activation.step
    loop_id = derive_id(plan.execution_id, activation.number, f"loop/{step}")
    stage_id = derive_id(plan.execution_id, activation.number, f"stage/{step}")
    policy = _policy(draft, loop)
    whole: dict[str, Json] = {"input": input_of(plan, draft.moment, activation)}
    if items is not None:
        whole["items"] = items
    document, ref = draft.externalize(whole)
    draft.emit(
        LoopStarted(
            node_name=step,
            node_type="loop",
            status="started",
            loop_id=loop_id,
            mode=_MODES[loop.mode],
            collection_size=total,
            collection_ref=None if ref is None else ref.uri,
        ),
        str(loop_id),
    )
    if loop.mode is Mode.FANOUT:
        shards = -(-(total or 0) // policy["size"])
        draft.emit(
            LoopFanoutStarted(
                node_name=step, status="started", loop_id=loop_id, total_shards=shards
            ),
            str(loop_id),
        )
    draft.emit(
        StageOpened(
            node_name=step,
            stage_id=stage_id,
            kind="fanout" if loop.mode is Mode.FANOUT else "loop",
            loop_id=loop_id,
            dsl_ref=f"{plan.path}@{plan.catalog_version}#{step}",
            pool=draft.playbook.steps[step].pool,
            total_rows=total,
            activation=activation.number,
            policy={**policy},
            source=source,
            document=document,
            payload_ref=ref,
        ),
        str(stage_id),
    )


def advance_stage(draft: Draft, stage_id: int) -> None:
    """Draft whatever an open stage lacks: expired leases, new attempts, new frames, its end."""
    for frame in list(_stage(draft, stage_id).frames.values()):
        _look_after(draft, frame)
    step = draft.playbook.steps[_stage(draft, stage_id).step]
    stage = _stage(draft, stage_id)
    stopped = _is_stopped(draft, stage)
    if not stopped:
        _fill(draft, stage)
        stage = _stage(draft, stage_id)
    if not stage.frames and (stopped or not has_more(stage)):
        _close(draft, stage, step.name)


def _stage(draft: Draft, stage_id: int) -> Stage:
    return draft.plan.stages[stage_id]


def _is_stopped(draft: Draft, stage: Stage) -> bool:
    """Return whether no new window is begun: something failed that nobody said to pass over."""
    if draft.plan.failure is not None:
        return True
    if draft.playbook.steps[stage.step].on_error == "continue":
        return False
    return stage.failure is not None or stage.rows_failed > 0


def _look_after(draft: Draft, frame: Frame) -> None:
    """Draft the end of a lease that ran out, and the next attempt or the end of a bad one."""
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
    elif now >= retry_at(frame, rules.retry_delay):
        _dispatch(draft, frame.stage_id, frame.frame_id, frame.cursor, again=frame)


def retry_at(frame: Frame, delay: timedelta) -> datetime:
    """Return when a frame is dispatched again: at once after a hand-back, later after failures."""
    if frame.status is not FrameStatus.FAILED:
        return frame.changed_at
    wait: timedelta = delay * 2 ** (frame.failures - 1)
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
    """Draft frames until the window is full or the rows are all handed out."""
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
            payload_ref=ref,
        ),
        f"{frame_id}/{attempt}",
        expected_version=0 if again is None else again.version,
    )


def _close(draft: Draft, stage: Stage, step: str) -> None:
    failed = stage.failure is not None or stage.rows_failed > 0
    total = stage.rows_done + stage.rows_failed
    why = _why(stage, total) if failed else None
    manifest = _manifest(draft, stage) if draft.playbook.steps[step].has_readers else None
    draft.emit(
        StageClosed(
            node_name=step,
            status="failed" if failed else "completed",
            error=None if why is None else shortened(why),
            stage_id=stage.stage_id,
            loop_id=stage.loop_id,
            frames=stage.frames_done,
            rows=stage.rows_done,
            failed_rows=stage.rows_failed,
            errors=list(stage.errors),
            retries=stage.retries,
            payload_ref=manifest,
        ),
        str(stage.stage_id),
    )
    counts: LoopCounts = {
        "total": total,
        "completed": stage.rows_done,
        "failed": stage.rows_failed,
    }
    if stage.kind == "fanout":
        some = stage.rows_done > 0
        state = "complete" if not failed else "partial" if some else "failed"
        draft.emit(
            LoopFaninCompleted(
                node_name=step,
                status="completed" if state == "complete" else state,
                loop_id=stage.loop_id,
                result={"status": state, "context": counts},
            ),
            str(stage.loop_id),
        )
    draft.emit(
        LoopDone(
            node_name=step,
            status="completed",
            loop_id=stage.loop_id,
            result={"status": "error" if failed else "ok", "context": counts},
        ),
        str(stage.loop_id),
    )


def _manifest(draft: Draft, stage: Stage) -> PayloadRef:
    """Draft the list of payloads that hold the loop's rows, for those who read them later."""
    ref = draft.attach(draft.moment.known.manifest(stage.stage_id), MANIFEST)
    reference = ResultRef.to_rows(draft.plan.execution_id, stage.step, stage.loop_id, ref)
    stored = stored_for_good(stage.loop_id, stage.step, stage.step, reference, ref)
    draft.emit(stored, str(stage.loop_id))
    return ref


def _why(stage: Stage, total: int) -> str:
    said: list[str] = []
    if stage.rows_failed:
        said.append(f"{stage.rows_failed} of {total} rows failed")
    if stage.failure is not None:
        said.append(stage.failure)
    for error in stage.errors[:3]:
        where = f"row {error.get('row')}" + (f" ({error['item']})" if error.get("item") else "")
        said.append(f"{where} in task {error.get('task')}: {error.get('error')}")
    return "; ".join(said)


def after_stage(draft: Draft, activation: Activation, stage: Stage) -> None:
    """Draft the end of a step whose stage is closed."""
    if stage.status != "FAILED":
        leave(draft, activation, StepEnding(loop_id=stage.loop_id))
        return
    why = _why(stage, stage.rows_done + stage.rows_failed)
    leave(
        draft,
        activation,
        StepEnding(
            status="error",
            error=f"step {stage.step}: {why}",
            loop_id=stage.loop_id,
            failed_rows=stage.rows_failed,
            errors=stage.errors,
        ),
    )
