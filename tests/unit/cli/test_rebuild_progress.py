"""Progress of a rebuild: a rate and an estimate, and not a line for every report."""

from __future__ import annotations

from streams.cli.rebuild_progress import Estimate


def test_a_line_has_the_rate_and_the_remaining_time() -> None:
    times = iter([0.0, 2.0])
    estimate = Estimate("projections", lambda: next(times))
    assert estimate.line(100, 1000, "events") == "projections: 100 of 1,000 events"
    line = estimate.line(300, 1000, "events")
    assert line == "projections: 300 of 1,000 events, 100/s, about 7 s left"


def test_there_is_at_most_one_line_a_second_and_one_for_the_end() -> None:
    times = iter([0.0, 0.5, 0.75])
    estimate = Estimate("kafka", lambda: next(times))
    assert estimate.line(0, 10, "events")
    assert estimate.line(5, 10, "events") is None
    assert estimate.line(10, 10, "events")
