"""Two workers and four playbooks under one rate for over a minute, in virtual time."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from itertools import pairwise
from random import Random

import pytest

from streams.dev.simulator.virtual import VirtualClock, VirtualLoop, run
from streams.log.rate_leases import MemoryRateLeases, RateSlice
from streams.worker.pace.rates import RateLimits
from streams.worker.pace.slots import Rate

SECONDS, WARM_UP = 60, 5


class SlowStore:
    """A store whose answers take a few milliseconds, and its own clock."""

    def __init__(self, clock: VirtualClock, random: Random) -> None:
        self._store, self._random = MemoryRateLeases(clock), random
        self.requests = 0

    async def lease(self, key: str, *, interval_s: float, count: int, behind_s: float) -> RateSlice:
        self.requests += 1
        await asyncio.sleep(self._random.uniform(0.0005, 0.01))
        found = await self._store.lease(key, interval_s=interval_s, count=count, behind_s=behind_s)
        await asyncio.sleep(self._random.uniform(0.0005, 0.01))
        return RateSlice(found.first_at + 1e6, found.now_at + 1e6)


async def story(loop: VirtualLoop, random: Random, *, dies: bool) -> tuple[list[float], SlowStore]:
    store, rate, times = SlowStore(VirtualClock(loop), random), Rate(100), list[float]()
    workers = [RateLimits(store, VirtualClock(loop)) for _ in range(2)]

    async def row(worker: RateLimits) -> None:
        while True:
            await worker.wait("host", rate)
            await asyncio.sleep(random.uniform(0.0, 0.004))  # on its way to the host
            times.append(loop.time())
            await asyncio.sleep(random.uniform(0.0, 0.02))

    rows = [
        [asyncio.ensure_future(row(worker)) for _playbook in range(4) for _ in range(8)]
        for worker in workers
    ]
    await asyncio.sleep(30.0)
    if dies:
        for one in rows[1]:
            one.cancel()
        await workers[1].aclose()
    await asyncio.sleep(WARM_UP + SECONDS - 30.0 + 1.0)
    return times, store


def simulated(seed: int, *, dies: bool = False) -> tuple[list[int], list[float], SlowStore]:
    loop, random = VirtualLoop(), Random(seed)
    times, store = run(loop, story(loop, random, dies=dies))
    ordered = sorted(times)
    begins = [ordered[0] + WARM_UP + second for second in range(SECONDS + 1)]
    places = [bisect_left(ordered, begin) for begin in begins]
    return [after - before for before, after in pairwise(places)], ordered, store


@pytest.mark.parametrize("seed", range(3))
def test_every_second_has_between_95_and_100_requests(seed: int) -> None:
    counts, times, store = simulated(seed)
    assert len(counts) == SECONDS
    assert (min(counts) >= 95, max(counts) <= 100) == (True, True), counts
    assert max(bisect_left(times, at + 1.0) - place for place, at in enumerate(times)) <= 100
    assert store.requests < len(times) / 4, "never a request for each call"


def test_a_worker_that_dies_leaves_its_part_to_the_other() -> None:
    counts, _, _ = simulated(7, dies=True)
    assert max(counts) <= 100
    # Only what it had leased when it died is lost.
    low = [count for count in counts if count < 95]
    assert len(low) <= 1
    assert min(counts) >= 60
