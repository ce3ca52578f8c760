"""Fold of an execution's events into its rows. Pure: no clock, no database.

Live projectors and replay both use it; there is no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeAlias, get_args

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
from streams.projector.digests import ALL, EndedRows, RowChain, state_checksums
from streams.projector.results import result_row
from streams.projector.rows import CommandRow, ExecutionRow, FrameRow, Row, StageRow
from streams.projector.shapes import command_row, execution_row, frame_row, stage_row


class View(NamedTuple):
    """An execution as of `seq`: the planner's fold, and what only rows need.

    It holds only open entities, so its size depends on the windows of the stages, not on the
    rows. A tuple, because one is made for every event.
    """

    plan: Plan | None = None
    updated_at: datetime | None = None
    parents: Mapping[int, int | None] = {}
    """Which event led to each open stage."""
    ended: EndedRows = EndedRows()
    """The rows that will not change any more."""
    payloads: RowChain = RowChain()
    """The digests of all payloads that its events refer to."""

    @property
    def seq(self) -> int:
        """The last absorbed seq."""
        return self.plan.seq if self.plan else 0

    @property
    def row(self) -> ExecutionRow:
        """The execution's own row."""
        assert self.plan is not None, "no event was absorbed"
        assert self.updated_at is not None
        return execution_row(self.plan, self.updated_at)


Entity: TypeAlias = tuple[type[Row], int, int]
"""The kind and id of a row, and the stage it belongs to."""


class Touched(NamedTuple):
    """What an event changed: entities that are still open, and last rows of ended ones."""

    still_open: tuple[Entity, ...] = ()
    ended: tuple[Row, ...] = ()


NOTHING = Touched()
_FRAME, _COMMAND, _RESULT = get_args(FrameEvent), get_args(CommandEvent), get_args(ResultEvent)
"""`isinstance` of a union takes five times as long."""


def absorb(view: View, event: Event) -> tuple[View, Touched]:
    """Return the view after `event` and what it changed; idempotent.

    Raises:
        Gap: events before this one were not absorbed; read them from the log first.
        Inconsistent: the events cannot be an execution's.
    """
    before = view.plan
    if before is not None and event.seq <= before.seq:
        return view, NOTHING
    known = typed(event)
    plan = evolve_typed(before, event, known)
    parents = view.parents
    if isinstance(known, StageOpened):
        parents = {key: one for key, one in parents.items() if key in plan.stages}
        parents[known.stage_id] = event.causation_id
    touched = _touched(before, plan, parents, event, known)
    ended = view.ended.after(touched.ended) if touched.ended else view.ended
    payloads = view.payloads
    if event.payload_ref is not None:
        payloads = payloads.after(event.payload_ref.sha256.encode())
    return View(plan, event.ingest_time, parents, ended, payloads), touched


def _touched(
    before: Plan | None,
    plan: Plan,
    parents: Mapping[int, int | None],
    event: Event,
    known: AnyEvent | None,
) -> Touched:
    if before is not None and plan.has_ended and not before.has_ended:
        return Touched(ended=tuple(_left_open(before, parents, event)))
    if isinstance(known, _FRAME):
        return _frame_touched(before, plan, event, known)
    if isinstance(known, _COMMAND):
        command = plan.commands.get(known.command_id)
        if command is None:
            return NOTHING
        if command.has_ended:
            row = command_row(plan, command, event.seq, ended_at=event.ingest_time)
            return Touched(ended=(row,))
        return Touched(((CommandRow, command.command_id, 0),))
    if isinstance(known, _RESULT):
        return Touched(ended=(result_row(event, known),))
    if isinstance(known, StageEvent) and (stage := plan.stages.get(known.stage_id)):
        if stage.ended_at is not None:
            return Touched(ended=(stage_row(plan, stage, parents.get(stage.stage_id), event.seq),))
        return Touched(((StageRow, stage.stage_id, stage.stage_id),))
    return NOTHING


def _frame_touched(before: Plan | None, plan: Plan, event: Event, known: FrameEvent) -> Touched:
    stage_id, frame_id = known.stage_id, known.frame_id
    stage = plan.stages.get(stage_id)
    earlier = before.stages.get(stage_id) if before else None
    if stage is None or earlier is None:
        return NOTHING
    has_counted = (stage.frames_made, stage.frames_done) != (
        earlier.frames_made,
        earlier.frames_done,
    )
    of_stage: tuple[Entity, ...] = ((StageRow, stage_id, stage_id),) if has_counted else ()
    if frame_id in stage.frames:
        return Touched(((FrameRow, frame_id, stage_id), *of_stage))
    if frame_id not in earlier.frames:
        return NOTHING
    # The stage drops a frame that ends; its last state is still written.
    frame = absorb_frame(earlier.frames[frame_id], known, event.ingest_time)
    return Touched(of_stage, (frame_row(plan, frame, event.seq, ended_at=event.ingest_time),))


def _left_open(before: Plan, parents: Mapping[int, int | None], event: Event) -> Iterator[Row]:
    """Yield the rows still open when the execution ended: they will never finish."""
    seq, at = event.seq, event.ingest_time
    for stage in before.stages.values():
        if stage.ended_at is None:
            yield stage_row(before, stage, parents.get(stage.stage_id), seq, cancelled_at=at)
        for frame in stage.frames.values():
            yield frame_row(before, frame, seq, ended_at=at, is_cancelled=True)
    for command in before.commands.values():
        if not command.has_ended:
            yield command_row(before, command, seq, ended_at=at, is_cancelled=True)


class ChangedRows:
    """The rows that a batch of an execution's events changed, each built once, at its end."""

    def __init__(self) -> None:
        self._still_open: dict[tuple[type[Row], int], tuple[int, int]] = {}
        self._ended: list[Row] = []
        self.count = 0
        """How many events were added."""

    def add(self, touched: Touched, seq: int) -> None:
        """Add what the event at `seq` changed."""
        self.count += 1
        for kind, entity_id, stage_id in touched.still_open:
            self._still_open[kind, entity_id] = (stage_id, seq)
        for row in touched.ended:
            self._still_open.pop((type(row), int(row.key[0])), None)
            self._ended.append(row)

    def rows(self, view: View) -> Iterator[Row]:
        """Yield the rows, as of the view after the last event."""
        plan = view.plan
        if plan is None or not self.count:
            return
        yield replace(view.row, state_checksum=checksums(view)[ALL])
        yield from self._ended
        for (kind, entity_id), (stage_id, seq) in self._still_open.items():
            if (row := _open_row(view, plan, (kind, entity_id, stage_id), seq)) is not None:
                yield row


def touched_rows(view: View, touched: Touched, seq: int) -> Iterator[Row]:
    """Yield the rows that the event at `seq` changed, but the execution's own."""
    yield from touched.ended
    if view.plan is not None:
        for entity in touched.still_open:
            if (row := _open_row(view, view.plan, entity, seq)) is not None:
                yield row


def _open_row(view: View, plan: Plan, entity: Entity, seq: int) -> Row | None:
    kind, entity_id, stage_id = entity
    stage = plan.stages.get(stage_id)
    if kind is StageRow and stage is not None:
        return stage_row(plan, stage, view.parents.get(stage_id), seq)
    if kind is FrameRow and stage is not None and entity_id in stage.frames:
        return frame_row(plan, stage.frames[entity_id], seq)
    if kind is CommandRow and (command := plan.commands.get(entity_id)):
        return command_row(plan, command, seq)
    return None


def open_rows(view: View) -> Iterator[Row]:
    """Yield the rows of everything that is open, without their place in the log (`last_seq` 0)."""
    plan = view.plan
    if plan is None or plan.has_ended:
        return
    for stage in plan.stages.values():
        if stage.ended_at is None:
            yield stage_row(plan, stage, view.parents.get(stage.stage_id), 0)
        for frame in stage.frames.values():
            yield frame_row(plan, frame, 0)
    for command in plan.commands.values():
        if not command.has_ended:
            yield command_row(plan, command, 0)


def checksums(view: View) -> dict[str, str]:
    """Return the checksum of each projection of the execution, and `all` over them."""
    return state_checksums(view.row, view.ended, open_rows(view))
