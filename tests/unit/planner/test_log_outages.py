"""When the planner takes the log for away: after a failed call, not during one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from streams.clock import SettableClock
from streams.errors import Refused, Unavailable
from streams.planner.log_outages import LogOutages

MARGIN = timedelta(seconds=5)


async def _fails(error: Exception) -> None:
    raise error


async def test_the_log_is_not_away_while_another_execution_of_the_batch_appends() -> None:
    clock = SettableClock()
    outages, answered = LogOutages(clock, MARGIN), asyncio.Event()
    append = asyncio.create_task(outages.ask(answered.wait))
    await asyncio.sleep(0)

    assert not outages.is_away
    clock.advance(1)
    assert outages.is_away, "it has not responded for a second"
    answered.set()
    await append
    assert not outages.is_away
    assert outages.ended_at is None


async def test_the_log_is_away_from_a_failed_call_until_an_answered_one() -> None:
    clock = SettableClock()
    outages = LogOutages(clock, MARGIN)
    with pytest.raises(Unavailable):
        await outages.ask(lambda: _fails(Unavailable("Postgres does not answer")))
    assert outages.is_away

    clock.advance(5)
    with pytest.raises(Refused):
        await outages.ask(lambda: _fails(Refused("a version conflict")))
    assert not outages.is_away, "a refusal is an answer"
    assert outages.ended_at == clock.now()
