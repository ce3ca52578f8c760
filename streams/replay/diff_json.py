"""JSON of differences: 64-bit ids as strings."""

from __future__ import annotations

from dataclasses import asdict

from streams.replay.log_diff import LogDiff


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
