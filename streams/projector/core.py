"""Fold of an execution's events into the rows they change. Pure: no clock, no database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from streams.events.model import Event
from streams.events.types import (
    AnyEvent,
    CommandEvent,
    FrameEvent,
    ResultEvent,
    StageEvent,
    StageOpened,
    typed,
)
from streams.execution.evolve import evolve_typed
from streams.execution.frame import absorb_frame
from streams.execution.plan import Plan
from streams.projector.results import result_row
from streams.projector.rows import ExecutionRow, Row
from streams.projector.shapes import command_row, execution_row, frame_row, stage_row


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An execution as of `seq`: the planner's fold, and what only rows need.

    It holds only open entities, so its size depends on the windows of the stages, not on the
    rows.
    """

    plan: Plan | None = None
    row: ExecutionRow | None = None
    parents: Mapping[int, int | None] = field(default_factory=dict)
    """Which event led to each open stage."""

    @property
    def seq(self) -> int:
        """The last absorbed seq."""
        return self.plan.seq if self.plan else 0


def absorb(view: View, event: Event) -> tuple[View, tuple[Row, ...]]:
    """Return the view after `event` and the rows it changed; idempotent.

    Raises:
        Gap: events before this one were not absorbed; read them from the log first.
        Inconsistent: the events cannot be an execution's.
    """
    if event.seq <= view.seq:
        return view, ()
    before = view.plan
    known = typed(event)
    plan = evolve_typed(before, event, known)
    row = execution_row(plan, event)
    parents = view.parents
    if isinstance(known, StageOpened):
        parents = {key: one for key, one in parents.items() if key in plan.stages}
        parents[known.stage_id] = event.causation_id
    changed = replace(view, plan=plan, row=row, parents=parents)
    return changed, (row, *_parts(before, changed, event, known))


def _parts(before: Plan | None, view: View, event: Event, known: AnyEvent | None) -> Iterator[Row]:
    """Yield the rows of the event's stage, frame or command."""
    plan = view.plan
    assert plan is not None
    if before is not None and plan.has_ended and not before.has_ended:
        yield from _left_open(before, view, event)
        return
    if isinstance(known, FrameEvent):
        yield from _frame_rows(before, view, event, known)
    elif isinstance(known, CommandEvent):
        if command := plan.commands.get(known.command_id):
            yield command_row(command, event)
    elif isinstance(known, ResultEvent):
        yield result_row(event, known)
    elif isinstance(known, StageEvent) and (stage := plan.stages.get(known.stage_id)):
        yield stage_row(stage, view.parents.get(stage.stage_id), event)


def _frame_rows(before: Plan | None, view: View, event: Event, known: FrameEvent) -> Iterator[Row]:
    stage_id, frame_id = known.stage_id, known.frame_id
    plan = view.plan
    stage = plan.stages.get(stage_id) if plan else None
    earlier = before.stages.get(stage_id) if before else None
    if stage is None or earlier is None:
        return
    frame = stage.frames.get(frame_id)
    if frame is None and frame_id in earlier.frames:
        # The stage drops a frame that ends; its last state is still written.
        frame = absorb_frame(earlier.frames[frame_id], known, event.ingest_time)
    if frame is None:
        return
    yield frame_row(frame, event)
    if (stage.frames_made, stage.frames_done) != (earlier.frames_made, earlier.frames_done):
        yield stage_row(stage, view.parents.get(stage_id), event)


def _left_open(before: Plan, view: View, event: Event) -> Iterator[Row]:
    """Yield the rows still open when the execution ended: they will never finish."""
    for stage in before.stages.values():
        if stage.ended_at is None:
            yield stage_row(stage, view.parents.get(stage.stage_id), event, status="CANCELLED")
        for frame in stage.frames.values():
            yield frame_row(frame, event, status="CANCELLED")
    for command in before.commands.values():
        if not command.has_ended:
            yield command_row(command, event, status="CANCELLED")
