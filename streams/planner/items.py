"""Work items of frames and commands that wait for a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streams.events.model import NewEvent
from streams.events.types import CommandIssued, CommandLeaseExpired, FrameDispatched, typed
from streams.execution.command import Command
from streams.execution.frame import Frame, FrameStatus
from streams.execution.plan import Plan
from streams.execution.stage import Stage
from streams.kafka.work.item import WorkItem
from streams.planner.steps import PLANNER_POOL
from streams.results.spill import groups_json

_PUBLISHED = frozenset((FrameDispatched.TYPE, CommandIssued.TYPE, CommandLeaseExpired.TYPE))


def items_of(plan: Plan, events: Iterable[NewEvent]) -> list[WorkItem]:
    """Return the work items of the frames and commands in these events, as of `plan`."""
    wanted = set()
    for event in events:
        if event.type not in _PUBLISHED or event.root != plan.root:
            continue
        match typed(event):
            case FrameDispatched(frame_id=entity_id):
                wanted.add(entity_id)
            case CommandIssued(command_id=entity_id) | CommandLeaseExpired(command_id=entity_id):
                wanted.add(entity_id)
    return [item for item in waiting_items(plan) if item.entity_id in wanted]


def waiting_items(plan: Plan) -> Iterator[WorkItem]:
    """Yield the item of every frame and command that waits for a worker."""
    for stage in plan.stages.values():
        for frame in stage.frames.values():
            if frame.status is FrameStatus.PENDING:
                yield _frame_item(plan, stage, frame)
    for command in _waiting_commands(plan):
        yield _command_item(plan, command)


def waiting_ids(plan: Plan) -> Iterator[tuple[int, int]]:
    """Yield entity and attempt of every frame and command that waits for a worker."""
    for stage in plan.stages.values():
        for frame in stage.frames.values():
            if frame.status is FrameStatus.PENDING:
                yield frame.frame_id, frame.attempt
    for command in _waiting_commands(plan):
        yield command.command_id, command.attempt


def _waiting_commands(plan: Plan) -> Iterator[Command]:
    return (
        command
        for command in plan.commands.values()
        if command.waits and command.pool != PLANNER_POOL
    )


def _frame_item(plan: Plan, stage: Stage, frame: Frame) -> WorkItem:
    return WorkItem(
        kind="frame",
        tenant_id=plan.tenant_id,
        organization_id=plan.organization_id,
        execution_id=plan.execution_id,
        entity_id=frame.frame_id,
        attempt=frame.attempt,
        version=frame.version,
        step=frame.step,
        pool=frame.pool,
        catalog_id=plan.catalog_id,
        catalog_version=plan.catalog_version,
        cause_id=plan.last_event_id,
        stage_id=stage.stage_id,
        loop_id=stage.loop_id,
        ordinal=frame.ordinal,
        cursor={k: v for k, v in frame.cursor.items() if k != "continues"},
        policy=stage.policy,
        rows_before=frame.row_count or None,
        shard_id=frame.shard_id,
        document=stage.document,
        document_ref=stage.document_ref,
        ctx=frame.ctx,
        ctx_ref=frame.ctx_ref,
        ctx_elsewhere=groups_json(frame.ctx_elsewhere or None),
        vars=frame.vars,
    )


def _command_item(plan: Plan, command: Command) -> WorkItem:
    return WorkItem(
        kind="command",
        tenant_id=plan.tenant_id,
        organization_id=plan.organization_id,
        execution_id=plan.execution_id,
        entity_id=command.command_id,
        attempt=command.attempt,
        version=command.version,
        step=command.step,
        pool=command.pool,
        catalog_id=plan.catalog_id,
        catalog_version=plan.catalog_version,
        cause_id=plan.last_event_id,
        tool=command.tool,
        document=command.document,
        document_ref=command.document_ref,
    )
