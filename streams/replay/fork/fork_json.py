"""JSON of a fork: 64-bit ids as strings."""

from __future__ import annotations

from dataclasses import asdict

from streams.replay.fork.forks import PreparedFork


def fork_json(fork: PreparedFork, execution_id: int | None) -> dict[str, object]:
    """Return a fork; without its id if it was not started."""
    point = fork.state.point
    return {
        "execution_id": None if execution_id is None else str(execution_id),
        "source_execution_id": str(point.plan.execution_id),
        "source_position": point.position,
        "source_chain": point.chain,
        "state_checksum": point.checksum,
        "path": point.plan.path,
        "entered_again": [
            {"step": one.step, "activation": one.number} for one in point.entered_again
        ],
        "overrides": fork.state.overrides.to_json(),
        "repeated_effects": [asdict(one) for one in fork.effects],
    }
