"""Burrow's rules, case by case: STOP, STALL, REWIND, WARN and OK."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streams.lag.evaluation import (
    LagStatus,
    OffsetCommit,
    always_has_lag,
    evaluate,
    is_recovered,
    is_stalled,
    is_stopped,
    never_decreases,
    recently_without_lag,
    rewind_index,
    window_of,
)

EVERY_MS = 100_000


def commits(*offsets_and_lags: tuple[int, int | None]) -> tuple[OffsetCommit, ...]:
    """Return commits, one every 100 s."""
    return tuple(
        OffsetCommit(offset, (number + 1) * EVERY_MS, lag)
        for number, (offset, lag) in enumerate(offsets_and_lags)
    )


ADVANCING = commits((1000, 10), (2000, 20), (3000, 30), (4000, 40), (5000, 50))
CAUGHT_UP_ONCE = commits((1000, 0), (2000, 20), (3000, 30), (4000, 40), (5000, 50))
DECREASING_ONCE = commits((1000, 50), (2000, 60), (3000, 55), (4000, 70), (5000, 80))
STANDING = commits((1000, 10), (1000, 20), (1000, 30), (1000, 40), (1000, 50))
STANDING_AFTER_NONE = commits((1000, 0), (1000, 20), (1000, 30), (1000, 40), (1000, 50))
SAME_LAG = commits((1000, 50), (1000, 50), (1000, 50), (1000, 50), (1000, 50))
RECOVERED = commits((1000, 100), (3000, 200), (2000, 1250), (2500, 900), (4000, 300))
REWOUND = commits((1000, 100), (3000, 200), (2000, 1250), (2500, 1300), (2600, 1400))
RESET = commits((1000, 100), (2000, 100), (3000, 100), (4000, 100), (0, 4100))
GAPS = commits((1000, 10), (2000, None), (3000, 20), (4000, None), (5000, 50))
DURING, LONG_AFTER = 600_000, 1_000_000


@pytest.mark.parametrize(
    ("window", "lag", "now_ms", "recent_ends", "expected"),
    [
        (ADVANCING, 50, DURING, (), LagStatus.WARN),
        (CAUGHT_UP_ONCE, 50, DURING, (), LagStatus.OK),
        (DECREASING_ONCE, 80, DURING, (), LagStatus.OK),
        (GAPS, 50, DURING, (), LagStatus.WARN),
        (STANDING, 50, DURING, (), LagStatus.STALL),
        (SAME_LAG, 50, DURING, (), LagStatus.STALL),
        (STANDING_AFTER_NONE, 50, DURING, (), LagStatus.OK),
        (ADVANCING, 50, LONG_AFTER, (), LagStatus.STOP),
        (CAUGHT_UP_ONCE, 50, LONG_AFTER, (), LagStatus.STOP),
        (STANDING, 50, LONG_AFTER, (), LagStatus.STOP),
        (ADVANCING, 50, LONG_AFTER, (5050, 5000), LagStatus.WARN),
        (CAUGHT_UP_ONCE, 50, LONG_AFTER, (5050, 5000), LagStatus.OK),
        (ADVANCING, 50, LONG_AFTER, (5050, 5001), LagStatus.STOP),
        (ADVANCING, 0, LONG_AFTER, (), LagStatus.OK),
        (RECOVERED, 300, DURING, (), LagStatus.OK),
        (REWOUND, 1400, DURING, (), LagStatus.REWIND),
        (REWOUND, 1400, LONG_AFTER, (), LagStatus.STOP),
        (RESET, 4100, DURING, (), LagStatus.REWIND),
        (RESET, 4100, LONG_AFTER, (), LagStatus.REWIND),
        (RESET, 0, LONG_AFTER, (), LagStatus.OK),
        ((), 50, LONG_AFTER, (), LagStatus.OK),
    ],
)
def test_a_window_of_commits_has_a_status(
    window: Sequence[OffsetCommit],
    lag: int,
    now_ms: int,
    recent_ends: Sequence[int],
    expected: LagStatus,
) -> None:
    found = evaluate(window, lag=lag, now_ms=now_ms, recent_ends=recent_ends)

    assert found is expected


def test_a_partition_without_owner_stops_before_the_window_has_passed() -> None:
    just_after = EVERY_MS * 5 + 11_000

    owned = evaluate(DECREASING_ONCE, lag=80, now_ms=just_after)
    orphaned = evaluate(DECREASING_ONCE, lag=80, now_ms=just_after, has_owner=False)
    at_once = evaluate(DECREASING_ONCE, lag=80, now_ms=just_after - 2000, has_owner=False)
    new_records = evaluate(
        DECREASING_ONCE, lag=80, now_ms=just_after, has_owner=False, recent_ends=(5000,)
    )

    assert (owned, orphaned) == (LagStatus.OK, LagStatus.STOP)
    assert (at_once, new_records) == (LagStatus.OK, LagStatus.OK)


def test_a_single_commit_stops_only_after_the_silence_that_is_allowed() -> None:
    single = (OffsetCommit(10, 1_000, 5),)

    assert evaluate(single, lag=5, now_ms=10_000) is LagStatus.OK
    assert evaluate(single, lag=5, now_ms=12_000) is LagStatus.STOP
    assert evaluate(single, lag=5, now_ms=12_000, silence_ms=60_000) is LagStatus.OK


def test_lag_that_is_allowed_is_no_lag() -> None:
    window = commits((1000, 2), (2000, 1), (2000, 1))

    assert evaluate(window, lag=1, now_ms=LONG_AFTER, allowed_lag=1) is LagStatus.OK
    assert evaluate(STANDING, lag=50, now_ms=DURING, allowed_lag=9) is LagStatus.STALL
    assert evaluate(STANDING, lag=50, now_ms=DURING, allowed_lag=10) is LagStatus.OK


def test_each_rule_by_itself() -> None:
    assert always_has_lag(ADVANCING)
    assert not always_has_lag(CAUGHT_UP_ONCE)
    assert rewind_index(ADVANCING) is None
    assert rewind_index(REWOUND) == 2
    assert not is_recovered(REWOUND, 2)
    assert is_recovered(RECOVERED, 2)
    assert not is_stopped(ADVANCING, 900_000)
    assert is_stopped(ADVANCING, 900_001)
    assert is_stalled(STANDING)
    assert not is_stalled(ADVANCING)
    assert never_decreases(GAPS)
    assert not never_decreases(DECREASING_ONCE)
    assert recently_without_lag(ADVANCING, (5100, 5000))
    assert not recently_without_lag(ADVANCING, (5100, 5001))


def test_a_group_has_the_levels_of_burrow() -> None:
    levels = [status.level for status in LagStatus]

    assert levels == ["OK", "WARN", "ERR", "ERR", "ERR"]


def test_the_window_is_the_last_ten_commits_with_a_second_between() -> None:
    every_100_ms = [OffsetCommit(number, number * 100) for number in range(200)]

    window = window_of(every_100_ms)

    assert [one.at_ms for one in window] == [1000 * second + 900 for second in range(10, 20)]
    assert [one.offset for one in window] == [10 * second + 9 for second in range(10, 20)]


def test_a_rewind_within_a_second_is_not_merged_away() -> None:
    window = window_of(
        [OffsetCommit(100, 0), OffsetCommit(20, 10), OffsetCommit(30, 20), OffsetCommit(40, 30)]
    )

    assert rewind_index(window) == 1
    assert window[-1].offset == 40
