"""Closing a stage: its counts, the manifest of its rows, the end of its step."""

from __future__ import annotations

from streams.events.model import PayloadRef
from streams.events.text import shortened
from streams.events.types import (
    LoopCounts,
    LoopDone,
    LoopFaninCompleted,
    ShardCounts,
    StageClosed,
)
from streams.execution.plan import Activation
from streams.execution.stage import Stage
from streams.planner.draft import Draft
from streams.planner.steps import StepEnding, leave
from streams.results.reading import MANIFEST
from streams.results.reference import ResultRef, stored_result


def close_stage(draft: Draft, stage: Stage, step: str) -> None:
    """Draft the end of a stage without frames, and of its loop."""
    failed = stage.failure is not None or (
        stage.rows_failed > 0 and not tolerates_failures(draft, step)
    )
    why = _why(stage) if failed else None
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
    _finish(draft, stage, step, failed=failed)


def tolerates_failures(draft: Draft, step: str) -> bool:
    """Return whether a loop succeeds although rows failed."""
    loop = draft.playbook.steps[step].loop
    return loop is not None and loop.tolerates_failures


def _finish(draft: Draft, stage: Stage, step: str, *, failed: bool) -> None:
    """Draft the end of a loop, and of its fan-out where it is one."""
    counts: LoopCounts = {
        "total": stage.rows_done + stage.rows_failed,
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
                result={"status": state, "context": _shards(stage)},
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


def _shards(stage: Stage) -> ShardCounts:
    """Return the counts of a fan-out, in shards."""
    done, failed = stage.shards_done, stage.shards_failed
    return {"done": done, "failed": failed, "total": done + failed}


def _manifest(draft: Draft, stage: Stage) -> PayloadRef:
    """Draft the manifest of the loop's rows, for later readers."""
    ref = draft.attach(draft.moment.known.manifest(stage.stage_id), MANIFEST)
    reference = ResultRef.to_rows(draft.plan.execution_id, stage.step, stage.loop_id, ref)
    stored = stored_result(stage.loop_id, stage.step, stage.step, reference, ref)
    draft.emit(stored, str(stage.loop_id))
    return ref


def _why(stage: Stage) -> str:
    total = stage.rows_done + stage.rows_failed
    reasons: list[str] = []
    if stage.rows_failed:
        reasons.append(f"{stage.rows_failed} of {total} rows failed")
    if stage.failure is not None:
        reasons.append(stage.failure)
    for error in stage.errors[:3]:
        where = f"row {error.get('row')}" + (f" ({error['item']})" if error.get("item") else "")
        reasons.append(f"{where} in task {error.get('task')}: {error.get('error')}")
    return "; ".join(reasons)


def after_stage(draft: Draft, activation: Activation, stage: Stage) -> None:
    """Draft the end of a step whose stage is closed."""
    if stage.status != "FAILED":
        leave(draft, activation, StepEnding(loop_id=stage.loop_id))
        return
    why = _why(stage)
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
