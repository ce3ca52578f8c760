"""Progress of an execution from its projection, until its end in the log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from streams.api.port import Head, Row
from streams.errors import Unavailable
from streams.events.model import Root

POLL_S, STALLED_S = 0.2, 120.0


class NoProgress(Unavailable):
    """The execution makes no progress."""

    def __init__(self, execution_id: int, seq: int, stalled_s: float) -> None:
        super().__init__(
            f"execution {execution_id} has had no new event for {stalled_s:.0f} s after its "
            f"event {seq}; see the logs of planner and worker in the demo's folder"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProgress:
    """Progress of one stage."""

    step: str
    status: str
    frames: int
    frames_done: int
    rows_done: int
    rows_failed: int
    total_rows: int | None
    """None until it is known."""
    started_at: datetime
    ended_at: datetime | None

    @property
    def share(self) -> float:
        """Return the completed share, from 0 to 1; of rows if their number is known."""
        if self.ended_at is not None:
            return 1.0
        done, whole = self.frames_done, self.frames
        if self.total_rows:
            done, whole = self.rows_done, self.total_rows
        return min(1.0, done / whole) if whole else 0.0


@dataclass(frozen=True, slots=True)
class ExecutionProgress:
    """A snapshot of an execution."""

    status: str
    error: str | None
    last_seq: int
    stages: tuple[StageProgress, ...]


class ExecutionReader(Protocol):
    """Reader of an execution's head in the log and its projections."""

    async def head(self, root: Root) -> Head | None: ...
    async def execution(self, execution_id: int) -> Row | None: ...
    async def parts(self, execution_id: int) -> Mapping[str, Any]: ...


async def follow(
    seen: ExecutionReader,
    execution_id: int,
    show: Callable[[ExecutionProgress], None],
    *,
    stalled_s: float = STALLED_S,
) -> ExecutionProgress:
    """Show the progress of the execution until it has ended, and return its end.

    Raises:
        NoProgress: neither log nor projection changed for `stalled_s`.
    """
    moved, moved_at = (0, 0), time.monotonic()
    while True:
        head = await seen.head(Root("execution", execution_id))
        view = await _look(seen, execution_id)
        show(view)
        seq = 0 if head is None else head.seq
        if head is not None and head.has_ended and view.last_seq >= seq:
            return view
        if moved != (seq, view.last_seq):
            moved, moved_at = (seq, view.last_seq), time.monotonic()
        elif time.monotonic() - moved_at > stalled_s:
            raise NoProgress(execution_id, seq, stalled_s)
        await asyncio.sleep(POLL_S)


async def _look(seen: ExecutionReader, execution_id: int) -> ExecutionProgress:
    row = await seen.execution(execution_id)
    if row is None:
        return ExecutionProgress("PENDING", None, 0, ())
    stages = (await seen.parts(execution_id))["stages"]
    return ExecutionProgress(
        row["status"], row["error"], row["last_seq"], tuple(map(_stage, stages))
    )


def _stage(row: Row) -> StageProgress:
    return StageProgress(
        step=row["step_name"],
        status=row["status"],
        frames=row["frames"],
        frames_done=row["frames_done"],
        rows_done=row["rows_done"],
        rows_failed=row["rows_failed"],
        total_rows=row["total_rows"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )
