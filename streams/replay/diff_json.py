"""JSON of differences: 64-bit ids as strings."""

from __future__ import annotations

from dataclasses import asdict

from streams.replay.log_diff import LogDiff
from streams.replay.run_diff import RunDiff


def log_diff_json(found: LogDiff) -> dict[str, object]:
    """Return the first divergence of two logs."""
    return {
        "equal": found.is_equal,
        "execution_id": str(found.execution_id),
        "a": {"log": found.a, "events": found.events[0]},
        "b": {"log": found.b, "events": found.events[1]},
        "position": found.seq,
        "comparisons": found.comparisons,
        "what": found.what,
        "differences": [asdict(one) for one in found.differences],
    }


def run_diff_json(found: RunDiff) -> dict[str, object]:
    """Return two executions step by step."""
    first = found.first_difference
    return {
        "equal": first is None,
        "path": found.path,
        "executions": [str(one) for one in found.executions],
        "first_difference": None if first is None else first.name,
        "steps": [
            {
                "step": one.name,
                "differs_in": one.differs_in,
                "a": None if one.a is None else one.a._asdict(),
                "b": None if one.b is None else one.b._asdict(),
            }
            for one in found.steps
        ],
    }
