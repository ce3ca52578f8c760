"""The simulator: repeatable, quiet where nothing is wrong, loud where a bug is planted."""

from __future__ import annotations

import pytest

from streams.simulator.plants import PLANTS
from streams.simulator.run import simulate

# Chosen once: the first seeds at which each planted bug shows.
SHOWS = {
    "lost-acknowledgement": range(0, 40),
    "double-dispatch": range(0, 40),
    "unfenced-commit": range(0, 40),
}


def test_no_seed_shows_anything_wrong() -> None:
    summary = simulate(range(25))
    assert summary.failures == []
    assert summary.seeds == 25
    assert {"planner killed", "worker killed", "projector killed", "hung"} <= summary.faults.keys()


def test_a_seed_says_the_same_every_time() -> None:
    once, again = simulate(range(3, 5)), simulate(range(3, 5))
    assert (once.steps, once.faults) == (again.steps, again.faults)


@pytest.mark.parametrize("bug", sorted(PLANTS))
def test_a_planted_bug_is_found(bug: str) -> None:
    summary = simulate(SHOWS[bug], plant=PLANTS[bug], stop_at_first=True)
    assert summary.failures
