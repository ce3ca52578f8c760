"""A hold is reported once at its begin and once at its end, however many calls wait."""

from __future__ import annotations

import asyncio

import pytest

from streams.errors import Unavailable
from streams.holds import Holds
from streams.retry import retry


class StoreAway(Unavailable):
    dependency = "the store"


class Store:
    """A store that is away until `is_up`."""

    is_up = False

    async def ask(self) -> str:
        if not self.is_up:
            raise StoreAway("no answer")
        return "an answer"


async def test_many_calls_that_wait_for_one_dependency_are_one_hold(
    caplog: pytest.LogCaptureFixture,
) -> None:
    holds, store = Holds(), Store()
    calls = [asyncio.create_task(retry(store.ask, holds=holds)) for _ in range(5)]
    await asyncio.sleep(0.5)
    assert holds.away == {"the store"}
    store.is_up = True
    assert await asyncio.gather(*calls) == ["an answer"] * 5
    assert holds.away == frozenset()
    begin, end = caplog.messages
    assert begin.startswith("the store is away")
    assert end.startswith("the store is back after")


async def test_a_call_made_before_the_return_begins_no_hold_when_it_fails_after_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    holds, loop = Holds(), asyncio.get_running_loop()
    with holds.waiter() as first, holds.waiter() as late:
        asked_at = loop.time()
        first.failed(StoreAway("no answer"), asked_at)
        await asyncio.sleep(0.01)
        first.answered()
        late.failed(StoreAway("no answer within 30 s"), asked_at)
    assert holds.away == frozenset()
    assert len(caplog.messages) == 2


async def test_a_hold_that_nobody_waits_in_any_more_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    holds, store = Holds(), Store()
    call = asyncio.create_task(retry(store.ask, holds=holds))
    await asyncio.sleep(0.01)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert holds.away == frozenset()
    assert caplog.messages[-1].startswith("the store: nothing waits for it any more")


async def test_a_call_that_is_answered_at_once_reports_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store()
    store.is_up = True
    assert await retry(store.ask, holds=Holds()) == "an answer"
    assert caplog.messages == []
