"""A timeline of an execution's commands and frames, from its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from streams.events.model import Event

_BEGINS = {"command.issued": "command_id", "frame.dispatched": "frame_id"}
_CLAIMS = {"command.claimed": "command_id", "frame.claimed": "frame_id"}
_ENDS = {
    "command.completed": "command_id",
    "command.failed": "command_id",
    "frame.committed": "frame_id",
    "frame.failed": "frame_id",
}


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
    bars: dict[str, TimelineBar] = {}
    began: datetime | None = None
    for event in events:
        began = began or event.ingest_time
        for name, bar in _moved(event, (event.ingest_time - began).total_seconds(), bars):
            bars[name] = bar
    steps = dict.fromkeys(bar.step for bar in bars.values())
    return tuple(
        TimelineLane(step, tuple(b for b in bars.values() if b.step == step)) for step in steps
    )


def _moved(
    event: Event, at_s: float, bars: Mapping[str, TimelineBar]
) -> Iterator[tuple[str, TimelineBar]]:
    meta = event.meta
    if (name := _BEGINS.get(event.type)) is not None:
        key, known = str(meta[name]), bars.get(str(meta[name]))
        # A later attempt is the same bar: it waited from its first attempt on.
        yield key, replace(known, attempts=int(meta["attempt"])) if known else _begun(event, at_s)
    elif (name := _CLAIMS.get(event.type)) is not None:
        bar = bars[str(meta[name])]
        yield str(meta[name]), replace(bar, claimed_s=at_s, worker=str(meta["worker"]))
    elif (name := _ENDS.get(event.type)) is not None:
        bar = replace(bars[str(meta[name])], ends_s=at_s)
        yield str(meta[name]), _counted(bar, event) if event.type == "frame.committed" else bar


def _begun(event: Event, at_s: float) -> TimelineBar:
    is_frame = event.type.startswith("frame.")
    what = f"frame {event.meta['ordinal']}" if is_frame else str(event.meta["tool"])
    return TimelineBar(step=event.node_name or "", what=what, begins_s=at_s, is_frame=is_frame)


def _counted(bar: TimelineBar, event: Event) -> TimelineBar:
    """Add the rows of a commit: a frame that closed early commits more than once."""
    size = event.payload_ref.byte_length if event.payload_ref else 0
    return replace(
        bar,
        rows=bar.rows + int(event.meta["rows"]),
        failed_rows=bar.failed_rows + int(event.meta["failed_rows"]),
        output_bytes=bar.output_bytes + size,
    )
