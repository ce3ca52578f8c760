"""Slots of a rate: never more calls in a second than allowed, however late each is made."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from itertools import pairwise
from random import Random

import pytest

from streams.clock import SystemClock
from streams.errors import Unavailable
from streams.log.rate_leases import MemoryRateLeases, RateSlice
from streams.worker.pace import rates as pace_rates
from streams.worker.pace.rates import RateLimits
from streams.worker.pace.slots import LATE_S, Rate, Slots


def most_in_a_second(times: list[float]) -> int:
    """Return the most calls in any half-open second."""
    ordered = sorted(times)
    return max(bisect_left(ordered, at + 1.0) - place for place, at in enumerate(ordered))


@pytest.mark.parametrize("rate", [Rate(100), Rate(7), Rate(1), Rate(0.5), Rate(50, burst=10)])
def test_no_second_has_more_calls_than_the_rate_and_its_burst(rate: Rate) -> None:
    random = Random(1)
    slots, calls = Slots(), []
    slots.add(RateSlice(5.0 - rate.behind_s, 5.0), rate, 600, 105.0)
    now = 105.0
    while slots.count(now):
        if slots.take(now):
            calls.append(now)
        now += random.choice([0.0001, 0.003, 0.02, 0.2 if random.random() < 0.01 else 0.001])
    assert most_in_a_second(calls) <= max(1, rate.per_second) + rate.burst - 1


def test_a_slot_is_used_neither_before_its_time_nor_long_after() -> None:
    slots, rate = Slots(), Rate(10)
    slots.add(RateSlice(50.0, 49.0), rate, 2, 1000.0)  # the first begins in one second
    assert not slots.take(1000.999)
    assert slots.take(1001.001)
    assert not slots.take(1001.05)
    assert not slots.take(1001.0 + rate.interval_s + LATE_S), "it has ended"
    assert slots.count(1002.0) == 0


def test_an_answer_that_took_long_does_not_delay_the_slots() -> None:
    slots, rate = Slots(), Rate(10)
    slots.add(RateSlice(1.0, 1.0), rate, 1, 101.001)
    assert slots.take(101.001)
    slots.add(RateSlice(2.0, 2.0), rate, 1, 102.5)  # its answer took half a second
    assert slots.first == pytest.approx(102.001, abs=0.001)


class CountedLeases:
    """A store shared by several workers, that counts requests and can be away."""

    def __init__(self) -> None:
        self._store = MemoryRateLeases(SystemClock())
        self.requests = self.failures = 0

    async def lease(self, key: str, *, interval_s: float, count: int, behind_s: float) -> RateSlice:
        if self.failures:
            self.failures -= 1
            raise Unavailable("away")
        self.requests += 1
        await asyncio.sleep(0.002)
        return await self._store.lease(key, interval_s=interval_s, count=count, behind_s=behind_s)


async def test_two_workers_share_a_rate_with_few_requests() -> None:
    store, rate, calls = CountedLeases(), Rate(200), []
    workers = [RateLimits(store, SystemClock()) for _ in range(2)]
    loop = asyncio.get_running_loop()
    end = loop.time() + 2.0

    async def row(worker: RateLimits) -> None:
        while loop.time() < end:
            await worker.wait("k", rate)
            calls.append(loop.time())

    await asyncio.gather(*(row(worker) for worker in workers for _ in range(30)))
    assert most_in_a_second(calls) <= 200
    assert len(calls) >= 2.0 * 200 * 0.55, "a busy machine may miss some slots"
    assert store.requests <= len(calls) / 4


async def test_calls_wait_while_the_store_is_away() -> None:
    store, rate = CountedLeases(), Rate(100)
    store.failures = 2
    limits = RateLimits(store, SystemClock())
    await asyncio.wait_for(limits.wait("k", rate), 10)
    assert store.failures == 0
    await limits.aclose()


async def test_a_cancelled_call_uses_no_slot_of_those_behind_it() -> None:
    limits, rate = RateLimits(CountedLeases(), SystemClock()), Rate(20)
    first = [asyncio.ensure_future(limits.wait("k", rate)) for _ in range(5)]
    await asyncio.sleep(0)
    for one in first[:4]:
        one.cancel()
    await asyncio.wait_for(first[4], 0.5)
    await limits.aclose()


async def test_keys_and_rates_do_not_share_slots() -> None:
    limits = RateLimits(CountedLeases(), SystemClock())
    began = asyncio.get_running_loop().time()
    await asyncio.gather(*(limits.wait(f"k{n}", Rate(1)) for n in range(20)))
    assert asyncio.get_running_loop().time() - began < 1.0
    await limits.aclose()


async def test_unused_keys_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace_rates, "IDLE_S", -1.0)
    limits = RateLimits(CountedLeases(), SystemClock())
    for n in range(3):
        await limits.wait(f"k{n}", Rate(10))
    assert len(limits._keys) == 1
    await limits.aclose()


async def test_slots_follow_each_other_without_gaps_from_one_slice_to_the_next() -> None:
    store = MemoryRateLeases(SystemClock())
    starts = []
    for _ in range(3):
        found = await store.lease("k", interval_s=0.01, count=5, behind_s=0.0)
        starts += [found.first_at + n * 0.01 for n in range(5)]
    gaps = [after - before for before, after in pairwise(starts)]
    assert gaps == pytest.approx([0.01] * 14)
