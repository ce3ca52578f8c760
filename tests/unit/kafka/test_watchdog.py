"""When a reader has stalled: behind, its broker answers, and no progress for too long."""

from __future__ import annotations

import asyncio

import pytest

from streams.holds import Holds
from streams.kafka.errors import Stalled
from streams.kafka.feed.port import Standing
from streams.kafka.feed.watchdog import StallTimer, Watchdog


def stalled_for(timer: StallTimer, standing: Standing, now: float) -> float:
    timer.has_progressed(standing, now)
    return timer.stalled_for(now)


def test_a_reader_that_is_behind_without_progress_has_stalled_after_its_time():
    timer = StallTimer(60, now=0)
    assert stalled_for(timer, Standing(5, 1), 0) == 0
    assert stalled_for(timer, Standing(5, 1), 59) == 0
    assert stalled_for(timer, Standing(5, 1), 61) == 61


def test_progress_begins_the_time_anew_however_far_behind():
    timer = StallTimer(60, now=0)
    stalled_for(timer, Standing(5, 1), 0)
    assert stalled_for(timer, Standing(500, 2), 50) == 0
    assert stalled_for(timer, Standing(900, 2), 109) == 0
    assert stalled_for(timer, Standing(900, 2), 110) == 60


def test_an_idle_reader_never_stalls_and_its_idle_time_does_not_count():
    timer = StallTimer(60, now=0)
    assert stalled_for(timer, Standing(0, 1), 1000) == 0
    assert stalled_for(timer, Standing(1, 1), 1030) == 0


def test_a_reset_counts_as_progress():
    timer = StallTimer(60, now=0)
    stalled_for(timer, Standing(5, 1), 0)
    timer.reset(50)
    assert stalled_for(timer, Standing(5, 1), 100) == 0


class StuckFeed:
    """A feed that is behind for ever; its broker answers or does not."""

    def __init__(self, *, is_answered: bool) -> None:
        self.is_answered = is_answered

    def standing(self) -> Standing:
        return Standing(9, 1)

    async def answers(self, *, within_s: float) -> bool:
        if not self.is_answered:
            await asyncio.sleep(within_s)
        return self.is_answered


async def test_a_reader_whose_broker_is_away_does_not_stall_until_it_is_back():
    feed = StuckFeed(is_answered=False)
    watching = asyncio.create_task(Watchdog(feed, Holds(), limit_s=0.2, thread=False).watch())
    await asyncio.sleep(0.6)
    assert not watching.done()
    feed.is_answered = True
    with pytest.raises(Stalled, match="9 records are pending"):
        await asyncio.wait_for(watching, 5)


async def test_a_reader_that_holds_a_batch_does_not_stall():
    watchdog = Watchdog(StuckFeed(is_answered=True), Holds(), limit_s=0.2, thread=False)
    watching = asyncio.create_task(watchdog.watch())
    for _ in range(6):
        await asyncio.sleep(0.1)
        watchdog.beat()
    assert not watching.done()
    watching.cancel()
