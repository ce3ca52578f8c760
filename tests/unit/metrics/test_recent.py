"""Rates, quantiles and maxima are of the recent past only."""

from __future__ import annotations

from streams.clock import SettableClock
from streams.metrics.recent import RecentMaximum, RecentValues


def test_a_rate_is_of_the_last_minute() -> None:
    clock = SettableClock()
    values = RecentValues(clock.monotonic)
    for _ in range(30):
        values.add()
    assert values.rate == 0.5
    clock.advance(59)
    values.add(30)
    assert values.rate == 1.0
    clock.advance(2)
    assert values.rate == 0.5


def test_a_quantile_is_the_smallest_value_that_so_many_do_not_exceed() -> None:
    clock = SettableClock()
    values = RecentValues(clock.monotonic)
    assert values.quantile(0.95) == 0
    for value in range(100, 0, -1):
        values.add(value)
    assert (values.quantile(0.95), values.quantile(0.5), values.quantile(1)) == (95, 50, 100)
    clock.advance(61)
    assert values.quantile(0.95) == 0


def test_a_maximum_lasts_for_one_to_two_windows() -> None:
    clock = SettableClock()
    depth = RecentMaximum(clock.monotonic, window_s=60)
    depth.add(9)
    depth.add(3)
    clock.advance(60)
    assert depth.value == 9
    depth.add(4)
    clock.advance(60)
    assert depth.value == 4
    clock.advance(120)
    assert depth.value == 0
