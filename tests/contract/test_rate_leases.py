"""What every store of rates promises, in memory and in Postgres alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from streams.app import open_pool
from streams.clock import SystemClock
from streams.log.rate_leases import MemoryRateLeases, PostgresRateLeases, RateLeases
from streams.settings import Settings
from tests.support.log.databases import dsn


@pytest.fixture
async def leases(place: Settings | None) -> AsyncIterator[RateLeases]:
    if place is None:
        yield MemoryRateLeases(SystemClock())
        return
    async with open_pool(dsn(place, "append")) as pool:
        yield PostgresRateLeases(pool)


async def test_slices_of_a_key_follow_each_other(leases: RateLeases) -> None:
    slices = [
        await leases.lease("follow", interval_s=10.0, count=count, behind_s=0.0)
        for count in (3, 1, 2)
    ]
    first = slices[0].first_at
    assert first == pytest.approx(slices[0].now_at, abs=0.5)
    assert [one.first_at - first for one in slices] == pytest.approx([0.0, 30.0, 40.0], abs=1e-3)


async def test_an_idle_key_begins_so_much_behind_and_no_more(leases: RateLeases) -> None:
    first = await leases.lease("idle", interval_s=0.01, count=1, behind_s=0.05)
    assert first.now_at - first.first_at == pytest.approx(0.05, abs=0.02)
    await asyncio.sleep(0.3)
    later = await leases.lease("idle", interval_s=0.01, count=1, behind_s=0.05)
    assert later.now_at - later.first_at == pytest.approx(0.05, abs=0.02)


async def test_keys_are_independent(leases: RateLeases) -> None:
    await leases.lease("one", interval_s=100.0, count=10, behind_s=0.0)
    other = await leases.lease("other", interval_s=1.0, count=1, behind_s=0.0)
    assert other.first_at == pytest.approx(other.now_at, abs=0.5)


async def test_concurrent_slices_do_not_overlap(leases: RateLeases) -> None:
    found = await asyncio.gather(
        *(leases.lease("many", interval_s=1.0, count=4, behind_s=0.0) for _ in range(10))
    )
    starts = sorted(one.first_at for one in found)
    gaps = [after - before for before, after in pairwise(starts)]
    assert gaps == pytest.approx([4.0] * 9, abs=1e-3)
