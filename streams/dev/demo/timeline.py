"""A timeline of an execution's commands and frames, from its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from streams.events.model import Event
from streams.events.types import (
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandIssued,
    FrameClaimed,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    FrameHeartbeat,
    typed,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineBar:
    """One command or frame; times are seconds since the start of the execution."""

    step: str
    what: str
    begins_s: float
    claimed_s: float | None = None
    ends_s: float | None = None
    worker: str = ""
    attempts: int = 1
    rows: int = 0
    failed_rows: int = 0
    output_bytes: int = 0
    is_frame: bool = False


@dataclass(frozen=True, slots=True)
class TimelineLane:
    """A step with its bars, in the order of their start."""

    step: str
    bars: tuple[TimelineBar, ...]

    @property
    def frames(self) -> tuple[TimelineBar, ...]:
        return tuple(bar for bar in self.bars if bar.is_frame)

    @property
    def rows(self) -> int:
        return sum(bar.rows for bar in self.frames)

    @property
    def failed_rows(self) -> int:
        return sum(bar.failed_rows for bar in self.frames)

    @property
    def took_s(self) -> float:
        ends = [bar.ends_s for bar in self.bars if bar.ends_s is not None]
        return max(ends) - self.bars[0].begins_s if ends else 0.0


def lanes(events: Iterable[Event]) -> tuple[TimelineLane, ...]:
    """Return a lane for each step that had commands or frames, in their order."""
    bars: dict[int, TimelineBar] = {}
    began: datetime | None = None
    for event in events:
        began = began or event.ingest_time
        for entity_id, bar in _moved(event, (event.ingest_time - began).total_seconds(), bars):
            bars[entity_id] = bar
    steps = dict.fromkeys(bar.step for bar in bars.values())
    return tuple(
        TimelineLane(step, tuple(b for b in bars.values() if b.step == step)) for step in steps
    )


def _moved(
    event: Event, at_s: float, bars: Mapping[int, TimelineBar]
) -> Iterator[tuple[int, TimelineBar]]:
    match typed(event):
        case CommandIssued(command_id=entity_id) as begun:
            yield entity_id, _begun(bars.get(entity_id), at_s, begun, begun.tool)
        case FrameDispatched(frame_id=entity_id) as begun:
            what = f"frame {begun.ordinal}"
            yield entity_id, _begun(bars.get(entity_id), at_s, begun, what)
        case CommandClaimed(command_id=entity_id, worker=worker):
            yield entity_id, replace(bars[entity_id], claimed_s=at_s, worker=worker)
        case FrameClaimed(frame_id=entity_id, worker=worker):
            yield entity_id, replace(bars[entity_id], claimed_s=at_s, worker=worker)
        case CommandCompleted(command_id=entity_id) | CommandFailed(command_id=entity_id):
            yield entity_id, replace(bars[entity_id], ends_s=at_s)
        case FrameCommitted(frame_id=entity_id) as committed:
            yield entity_id, _counted(replace(bars[entity_id], ends_s=at_s), committed)
        case FrameHeartbeat(frame_id=entity_id, cursor=dict()) as checkpoint:
            yield entity_id, _counted(bars[entity_id], checkpoint)
        case FrameFailed(frame_id=entity_id):
            yield entity_id, replace(bars[entity_id], ends_s=at_s)


def _begun(
    known: TimelineBar | None, at_s: float, event: CommandIssued | FrameDispatched, what: str
) -> TimelineBar:
    if known is not None:  # a later attempt is the same bar: it waited from its first attempt on
        return replace(known, attempts=event.attempt)
    is_frame = isinstance(event, FrameDispatched)
    return TimelineBar(step=event.node_name, what=what, begins_s=at_s, is_frame=is_frame)


def _counted(bar: TimelineBar, event: FrameCommitted | FrameHeartbeat) -> TimelineBar:
    """Add the rows of a commit or a checkpoint."""
    size = event.payload_ref.byte_length if event.payload_ref else 0
    return replace(
        bar,
        rows=bar.rows + (event.rows or 0),
        failed_rows=bar.failed_rows + (event.failed_rows or 0),
        output_bytes=bar.output_bytes + size,
    )
