"""Frames of an execution that wait for a worker."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from streams.events.types import StageOpenedKind
from streams.execution.frame import CLAIMED
from streams.execution.plan import Plan
from streams.execution.stage import Stage

STAGE_KINDS: tuple[str, ...] = get_args(StageOpenedKind)
Backlog = tuple[tuple[str, int], ...]
"""Kinds of stages, each with a number of frames."""


def backlog_of(plan: Plan) -> Backlog:
    """Return how many frames wait, by the kind of their stage."""
    found: Counter[str] = Counter()
    for stage in plan.stages.values():
        found[stage.kind] += sum(frame.status is not CLAIMED for frame in stage.frames.values())
        if plan.failure is None and stage.failure is None:
            found[stage.kind] += _to_come(stage)
    return tuple((kind, count) for kind, count in sorted(found.items()) if count)


def _to_come(stage: Stage) -> int:
    """Return how many frames are still to be made; those of a claim cursor are not known."""
    source = stage.source
    if stage.status != "OPEN":
        return 0
    if source["kind"] == "claim":
        return len(stage.continuations)
    if source["kind"] == "list":
        windows = -(-(stage.total_rows or 0) // int(stage.policy["size"]))
    else:
        windows = int(source["count"])
    return len(stage.continuations) + max(windows - stage.minted, 0)
