"""Retrying while a dependency is unavailable."""

from __future__ import annotations

import pytest

from streams.clock import SettableClock
from streams.errors import Refused, Unavailable
from streams.retry import retry, retry_until


class Flaky:
    """Fails a number of times, then returns."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.calls, self._failures = 0, failures
        self._error = error or Unavailable("down")

    async def __call__(self) -> int:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error
        return self.calls


async def test_an_attempt_is_repeated_with_growing_pauses_until_it_returns():
    pauses: list[float] = []
    returned = await retry(
        Flaky(4), on_failure=lambda _, pause: pauses.append(pause), longest_pause_s=0.002
    )
    assert returned == 5
    assert pauses == [0.002] * 4


async def test_the_pause_doubles_up_to_its_bound():
    pauses: list[float] = []
    await retry(Flaky(2), on_failure=lambda _, pause: pauses.append(pause))
    assert pauses == [0.1, 0.2]


async def test_other_errors_are_raised_at_once():
    attempt = Flaky(1, Refused("no"))
    with pytest.raises(Refused):
        await retry(attempt)
    assert attempt.calls == 1


async def test_a_deadline_that_would_pass_ends_the_retries():
    clock, attempt = SettableClock(), Flaky(9)
    with pytest.raises(Unavailable):
        await retry_until(attempt, clock=clock, deadline=0.05)
    assert attempt.calls == 1
