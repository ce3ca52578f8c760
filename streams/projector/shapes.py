"""Rows of executions, stages, frames and commands, from their folded state."""

from __future__ import annotations

from datetime import datetime

from streams.events.reading import freeze, unfrozen
from streams.execution.command import Command
from streams.execution.frame import Frame
from streams.execution.plan import Plan
from streams.execution.stage import Stage
from streams.projector.rows import (
    PROJECTION_VERSION,
    CommandRow,
    ExecutionRow,
    FrameRow,
    StageRow,
)

_FrameRow = unfrozen(FrameRow)


def execution_row(plan: Plan, updated_at: datetime) -> ExecutionRow:
    """Return the execution after its last event, which was stored at `updated_at`."""
    has_ended = plan.ended_at is not None
    state = {"loop": plan.loops, "fanout": plan.fanouts}
    return ExecutionRow(
        execution_id=plan.execution_id,
        tenant_id=plan.tenant_id,
        organization_id=plan.organization_id,
        catalog_id=plan.catalog_id,
        parent_execution_id=plan.parent_execution_id,
        path=plan.path,
        version=plan.catalog_version,
        status="SUSPENDED" if plan.is_suspended and not has_ended else plan.status,
        last_event_type=plan.last_event_type,
        last_node_name=plan.last_node_name,
        last_event_id=plan.last_event_id,
        start_time=plan.started_at,
        end_time=plan.ended_at,
        error=plan.error or (plan.failure or {}).get("error") or plan.suspension,
        state={part: steps for part, steps in state.items() if steps},
        result=plan.result,
        result_ref=plan.output,
        last_seq=plan.seq,
        created_at=plan.started_at,
        updated_at=updated_at,
    )


def stage_row(
    plan: Plan,
    stage: Stage,
    parent_event_id: int | None,
    seq: int,
    *,
    cancelled_at: datetime | None = None,
) -> StageRow:
    """Return the stage after the event at `seq`; `cancelled_at` is when its execution ended."""
    return StageRow(
        stage_id=stage.stage_id,
        execution_id=plan.execution_id,
        tenant_id=plan.tenant_id,
        organization_id=plan.organization_id,
        parent_event_id=parent_event_id,
        loop_id=stage.loop_id,
        kind=stage.kind,
        step_name=stage.step,
        dsl_ref=stage.dsl_ref,
        status="CANCELLED" if cancelled_at else stage.status,
        frame_policy=stage.policy,
        total_rows=stage.total_rows,
        frames=stage.frames_made,
        frames_done=stage.frames_done,
        rows_done=stage.rows_done,
        rows_failed=stage.rows_failed,
        error=stage.failure,
        started_at=stage.opened_at,
        ended_at=cancelled_at or stage.ended_at,
        last_seq=seq,
    )


def frame_row(
    plan: Plan,
    frame: Frame,
    seq: int,
    *,
    ended_at: datetime | None = None,
    is_cancelled: bool = False,
) -> FrameRow:
    """Return the frame after the event at `seq`."""
    row = object.__new__(_FrameRow)
    row.frame_id = frame.frame_id
    row.stage_id = frame.stage_id
    row.execution_id = plan.execution_id
    row.tenant_id = plan.tenant_id
    row.organization_id = plan.organization_id
    row.step_name = frame.step
    row.ordinal = frame.ordinal
    row.shard_id = frame.shard_id
    row.cursor = frame.end_cursor or frame.cursor
    row.row_count = frame.row_count
    row.rows_failed = frame.failed_rows
    row.status = "CANCELLED" if is_cancelled else frame.status
    row.owner_worker = frame.lease.owner if frame.lease else None
    row.lease_until = frame.lease.until if frame.lease else None
    row.output_ref = frame.output
    row.events_emitted = frame.version
    row.attempts = frame.attempt
    row.error = frame.error
    row.created_at = frame.created_at
    row.completed_at = ended_at
    row.last_seq = seq
    row.projection_version = PROJECTION_VERSION
    return freeze(row, FrameRow)


def command_row(
    plan: Plan,
    command: Command,
    seq: int,
    *,
    ended_at: datetime | None = None,
    is_cancelled: bool = False,
) -> CommandRow:
    """Return the command after the event at `seq`. One to be republished is PENDING."""
    own_status = "PENDING" if command.waits else command.status
    return CommandRow(
        command_id=command.command_id,
        execution_id=plan.execution_id,
        tenant_id=plan.tenant_id,
        organization_id=plan.organization_id,
        step_name=command.step,
        tool=command.tool,
        pool=command.pool,
        status="CANCELLED" if is_cancelled else own_status,
        owner_worker=command.lease.owner if command.lease else None,
        lease_until=command.lease.until if command.lease else None,
        result_ref=command.output,
        error=command.error,
        events_emitted=command.version,
        attempts=command.attempt,
        created_at=command.created_at,
        completed_at=ended_at,
        last_seq=seq,
    )
