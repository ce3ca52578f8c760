"""Counts of a worker's claims and frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Literal

from streams.metrics.declared import (
    CLAIM_SECONDS,
    FRAME_LEASE_SECONDS,
    FRAME_P95,
    FRAME_ROWS,
    FRAMES,
)
from streams.metrics.metric import Distribution, Sample
from streams.metrics.recent import RecentValues

P95_WINDOW_S = 300.0
FrameOutcome = Literal["committed", "empty", "failed"]
FRAME_OUTCOMES: tuple[FrameOutcome, ...] = ("committed", "empty", "failed")


class WorkCounts:
    """What a worker has claimed, and how its frames ended."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._claims: dict[tuple[str, str], Distribution] = {}
        self._frames: Counter[FrameOutcome] = Counter()
        self._rows, self._failed_rows = 0, 0
        self._seconds = Distribution(FRAME_LEASE_SECONDS.bounds)
        self._recent = RecentValues(clock, window_s=P95_WINDOW_S)

    def claim(self, kind: str, seconds: float, *, is_won: bool) -> None:
        """Count a claim of a frame or command that the log has decided."""
        key = (kind, "claimed" if is_won else "lost")
        if (taken := self._claims.get(key)) is None:
            taken = self._claims[key] = Distribution(CLAIM_SECONDS.bounds)
        taken.observe(seconds)

    def rows(self, done: int, failed: int) -> None:
        """Count the rows of a checkpoint or a commit."""
        self._rows += done
        self._failed_rows += failed

    def committed(self, rows: int, seconds: float) -> None:
        """Count a frame that was committed, with all its rows."""
        self._frames["committed" if rows else "empty"] += 1
        self._seconds.observe(seconds)
        self._recent.add(seconds)

    def failed(self) -> None:
        """Count an attempt at a frame that failed."""
        self._frames["failed"] += 1

    def samples(self) -> Iterator[Sample]:
        """Yield all of it."""
        for key, taken in self._claims.items():
            yield Sample(CLAIM_SECONDS, taken, key)
        for outcome in FRAME_OUTCOMES:
            yield Sample(FRAMES, self._frames[outcome], (outcome,))
        yield Sample(FRAME_ROWS, self._rows, ("done",))
        yield Sample(FRAME_ROWS, self._failed_rows, ("failed",))
        yield Sample(FRAME_LEASE_SECONDS, self._seconds)
        yield Sample(FRAME_P95, self._recent.quantile(0.95))
