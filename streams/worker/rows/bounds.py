"""Limits of a frame, from its policy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from streams.kafka.work.item import WorkItem
from streams.worker.options import Options


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a frame: duration, size and concurrent rows."""

    duration_s: float | None
    memory_bytes: int | None
    rows_at_once: int
    checkpoint_s: float = math.inf
    """How long rows run before those that are done are checkpointed."""

    @classmethod
    def of(cls, item: WorkItem, options: Options) -> Bounds:
        """Read them from the frame's policy."""
        policy = item.policy or {}
        duration = policy.get("duration_ms")
        return cls(
            None if duration is None else duration / 1000,
            policy.get("memory_bytes"),
            policy.get("row_concurrency") or options.row_concurrency,
            options.beat_s,
        )
