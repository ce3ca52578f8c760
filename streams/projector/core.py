"""From an execution's events to the rows that they change. Pure: no clock, no database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from streams.events.event_fields import number
from streams.events.model import Event
from streams.events.types import FrameEvent, typed
from streams.execution.evolve import evolve
from streams.execution.frame import absorb_frame
from streams.execution.plan import Plan
from streams.projector.results import result_rows
from streams.projector.rows import ExecutionRow, Row
from streams.projector.shapes import command_row, execution_row, frame_row, stage_row


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An execution as seen up to `seq`: the fold that the planner uses, and what only rows need.

    It holds what is open, never what has ended, so its size follows the windows of the
    stages and not the rows.
    """

    plan: Plan | None = None
    row: ExecutionRow | None = None
    parents: Mapping[int, int | None] = field(default_factory=dict)
    """Which event led to each open stage."""

    @property
    def seq(self) -> int:
        """How far the log was absorbed."""
        return self.plan.seq if self.plan else 0


def absorb(view: View, event: Event) -> tuple[View, tuple[Row, ...]]:
    """Return the view after `event` and the rows it changed; an event seen before changes nothing.

    Raises:
        Gap: events before this one were not absorbed; read them from the log first.
        Inconsistent: the events cannot be an execution's.
    """
    if event.seq <= view.seq:
        return view, ()
    before = view.plan
    plan = evolve(before, event)
    row = execution_row(plan, event)
    parents = view.parents
    if event.type == "stage.opened":
        parents = {key: one for key, one in parents.items() if key in plan.stages}
        parents[number(event, "stage_id")] = event.causation_id
    changed = replace(view, plan=plan, row=row, parents=parents)
    return changed, (row, *_parts(before, changed, event))


def _parts(before: Plan | None, view: View, event: Event) -> Iterator[Row]:
    """Yield the rows of the stage, frame or command that the event is about."""
    plan = view.plan
    assert plan is not None
    if before is not None and plan.has_ended and not before.has_ended:
        yield from _left_open(before, view, event)
        return
    entity = event.type.partition(".")[0]
    if entity == "result":
        yield from result_rows(event)
    elif entity == "frame":
        yield from _frame_rows(before, view, event)
    elif entity == "stage" and (stage := plan.stages.get(number(event, "stage_id"))):
        yield stage_row(stage, view.parents.get(stage.stage_id), event)
    elif entity == "command" and (command := plan.commands.get(number(event, "command_id"))):
        yield command_row(command, event)


def _frame_rows(before: Plan | None, view: View, event: Event) -> Iterator[Row]:
    one = typed(event)
    if not isinstance(one, FrameEvent):
        return
    stage_id, frame_id = one.stage_id, one.frame_id
    plan = view.plan
    stage = plan.stages.get(stage_id) if plan else None
    known = before.stages.get(stage_id) if before else None
    if stage is None or known is None:
        return
    frame = stage.frames.get(frame_id)
    if frame is None and frame_id in known.frames:
        # The stage lets go of a frame that ends; its last value is still a row to be written.
        frame = absorb_frame(known.frames[frame_id], one, event.ingest_time)
    if frame is None:
        return
    yield frame_row(frame, event)
    if (stage.frames_made, stage.frames_done) != (known.frames_made, known.frames_done):
        yield stage_row(stage, view.parents.get(stage_id), event)


def _left_open(before: Plan, view: View, event: Event) -> Iterator[Row]:
    """Yield what was open when the execution ended: nobody will ever finish it."""
    for stage in before.stages.values():
        if stage.ended_at is None:
            yield stage_row(stage, view.parents.get(stage.stage_id), event, status="CANCELLED")
        for frame in stage.frames.values():
            yield frame_row(frame, event, status="CANCELLED")
    for command in before.commands.values():
        if not command.has_ended:
            yield command_row(command, event, status="CANCELLED")
