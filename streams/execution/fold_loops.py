"""The fold of loops: their stages, frames and fan-outs."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

from streams.events.model import Json
from streams.events.types import (
    FrameCommitted,
    FrameDispatched,
    FrameEvent,
    FrameHeartbeat,
    LoopDone,
    LoopFaninCompleted,
    LoopFanoutStarted,
    LoopStarted,
    StageClosed,
    StageOpened,
)
from streams.execution.ctx import with_ctx
from streams.execution.fast_replace import copied, settle
from streams.execution.handlers import Handlers
from streams.execution.plan import Plan, key_of
from streams.execution.stage import Stage, absorb_in_stage, close_stage, open_stage
from streams.results.envelope import Envelope
from streams.results.reference import ResultRef
from streams.results.spill import groups_of

LOOP_HANDLERS = Handlers()
_REPORTS = (FrameCommitted, FrameHeartbeat)


@LOOP_HANDLERS.on(StageOpened)
def _stage_opened(plan: Plan, event: StageOpened, at: datetime) -> Plan:
    stage = open_stage(event, at)
    plan = copied(plan, stages={**plan.stages, stage.stage_id: stage})
    activation = plan.activations.get(key_of(stage.step, stage.activation))
    if activation is not None:
        changed = copied(activation, stage_id=stage.stage_id)
        key = key_of(stage.step, stage.activation)
        plan = settle(plan, activations={**plan.activations, key: changed})
    return plan


@LOOP_HANDLERS.on(StageClosed)
def _stage_closed(plan: Plan, event: StageClosed, at: datetime) -> Plan:
    stage = plan.stages.get(event.stage_id)
    if stage is None:
        return plan
    closed = close_stage(stage, event, at)
    plan = copied(plan, stages={**plan.stages, stage.stage_id: closed})
    counts: dict[str, Json] = {
        "total": stage.rows_done + stage.rows_failed,
        "completed": stage.rows_done,
        "failed": stage.rows_failed,
        "frames": stage.frames_done,
    }
    envelope = Envelope(
        {
            "status": "error" if event.status == "failed" else "success",
            "meta": {"stage_id": str(stage.stage_id), "loop_id": str(stage.loop_id)},
        }
    )
    if (ref := event.payload_ref) is None:
        envelope = envelope.with_fields(data=counts)
    else:
        rows = ResultRef.to_rows(plan.execution_id, stage.step, stage.loop_id, ref)
        envelope = envelope.with_fields(counts=counts, ref=rows.to_json()).with_payload(ref)
    if event.status == "failed":
        envelope = envelope.with_fields(error={"message": event.error, "rows": list(stage.errors)})
    return settle(plan, results={**plan.results, stage.step: envelope})


@LOOP_HANDLERS.on(*get_args(FrameEvent))
def _frame(plan: Plan, event: FrameEvent, at: datetime) -> Plan:
    stage = plan.stages.get(event.stage_id)
    if stage is None:
        return plan
    if event.frame_id not in stage.frames and not isinstance(event, FrameDispatched):
        return plan
    changed = absorb_in_stage(stage, event, at)
    plan = copied(plan, stages={**plan.stages, stage.stage_id: changed})
    if isinstance(event, _REPORTS):
        plan = with_ctx(plan, event.ctx, groups_of(event.ctx_elsewhere))
    if changed.frames_done != stage.frames_done:
        plan = _count(plan, changed.step, changed.rows_done, changed.rows_failed)
        if changed.kind == "fanout":
            plan = _count_shards(plan, changed)
    return plan


def _count(plan: Plan, step: str, done: int, failed: int) -> Plan:
    """Set the progress of a loop in a fresh copy of the plan."""
    loop = {**plan.loops.get(step, {}), "done": done, "failed": failed}
    return settle(plan, loops={**plan.loops, step: loop})


def _count_shards(plan: Plan, stage: Stage) -> Plan:
    known = plan.fanouts.get(stage.step, {})
    fanout = {**known, "done": stage.shards_done, "failed": stage.shards_failed}
    return settle(plan, fanouts={**plan.fanouts, stage.step: fanout})


@LOOP_HANDLERS.on(LoopStarted)
def _loop_started(plan: Plan, event: LoopStarted, at: datetime) -> Plan:
    loop = {
        "loop_id": str(event.loop_id),
        "total": event.collection_size,
        "done": 0,
        "failed": 0,
        "collection_ref": event.collection_ref,
        "mode": event.mode,
        "completed": False,
    }
    return copied(plan, loops={**plan.loops, event.node_name: loop})


@LOOP_HANDLERS.on(LoopDone)
def _loop_done(plan: Plan, event: LoopDone, at: datetime) -> Plan:
    step = event.node_name
    return copied(plan, loops={**plan.loops, step: {**plan.loops.get(step, {}), "completed": True}})


@LOOP_HANDLERS.on(LoopFanoutStarted)
def _fanout_started(plan: Plan, event: LoopFanoutStarted, at: datetime) -> Plan:
    fanout = {
        "loop_id": str(event.loop_id),
        "total_shards": event.total_shards,
        "done": 0,
        "failed": 0,
        "status": "running",
    }
    return copied(plan, fanouts={**plan.fanouts, event.node_name: fanout})


@LOOP_HANDLERS.on(LoopFaninCompleted)
def _fanin(plan: Plan, event: LoopFaninCompleted, at: datetime) -> Plan:
    step = event.node_name
    known = {**plan.fanouts.get(step, {}), "status": event.status or "completed"}
    return copied(plan, fanouts={**plan.fanouts, step: known})
