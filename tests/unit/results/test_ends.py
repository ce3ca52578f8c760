"""Ends of copies: the latest end of a name counts, and there is always one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from streams.results.copies.ends import LONGEST, Ends, end_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_latest_end_of_a_name_counts() -> None:
    ends = Ends()
    for name, until in (("a", 10), ("a", 30), ("a", 20), ("b", 15), ("c", 10)):
        ends.note(name, until)
    ends.drop("c")
    assert ends.take_due(9) == []
    assert ends.take_due(29) == ["b"]
    assert ends.take_due(30) == ["a"]
    assert ends.take_due(99) == []


def test_a_name_that_has_ended_may_begin_again() -> None:
    ends = Ends()
    ends.note("a", 10)
    assert ends.take_due(10) == ["a"]
    ends.note("a", 5)
    assert ends.take_due(10) == ["a"]


@pytest.mark.parametrize(
    ("expires_at", "expected"),
    [
        (None, NOW + LONGEST),
        (NOW + timedelta(hours=1), NOW + timedelta(hours=1)),
        (NOW + timedelta(days=365), NOW + LONGEST),
    ],
)
def test_a_copy_ends_with_its_result_and_after_a_day_at_the_latest(
    expires_at: datetime | None, expected: datetime
) -> None:
    assert end_of(expires_at, NOW) == expected
