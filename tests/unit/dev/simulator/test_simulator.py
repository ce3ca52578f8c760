"""The simulator: repeatable, quiet where nothing is wrong, loud where a bug is planted."""

from __future__ import annotations

import pytest

from streams.dev.simulator.plants import PLANTS
from streams.dev.simulator.run import simulate

# Where each planted bug shows first, and some room, because any change moves the dice: if one
# of these no longer finds its bug, look for new seeds with `streams simulate --plant`.
SHOWS = {
    "lost-acknowledgement": range(20),
    "double-dispatch": range(10, 40),
    "unfenced-commit": range(30, 60),
    "deaf-to-suspension": range(10, 40),
    "late-registration": range(60, 90),
}


def test_no_seed_shows_anything_wrong() -> None:
    summary = simulate(range(15))
    assert summary.failures == []
    assert summary.seeds == 15
    assert {"planner killed", "worker killed", "projector killed", "hung"} <= summary.faults.keys()
    steered = {"worker stopped", "worker outlived", "operator suspended", "planner suspended"}
    assert steered <= summary.faults.keys()


def test_a_seed_says_the_same_every_time() -> None:
    once, again = simulate(range(3, 5)), simulate(range(3, 5))
    assert (once.steps, once.faults) == (again.steps, again.faults)


@pytest.mark.parametrize("bug", sorted(PLANTS))
def test_a_planted_bug_is_found(bug: str) -> None:
    summary = simulate(SHOWS[bug], plant=PLANTS[bug], stop_at_first=True)
    (found,) = summary.failures
    without = simulate(range(found.seed, found.seed + 1))
    assert without.failures == [], "the seed fails without the planted bug, too"
