"""What every keeper of workers' lives promises, in memory and in Postgres alike."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from streams.app import open_pool
from streams.log.worker_incarnations import (
    Incarnations,
    MemoryIncarnations,
    PostgresIncarnations,
    Superseded,
    check,
    is_over,
)
from streams.settings import Settings
from tests.support.log.databases import dsn


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.stack)])
def place(request: pytest.FixtureRequest) -> Settings | None:
    return None if request.param == "memory" else request.getfixturevalue("fresh_database")


@pytest.fixture
async def lives(place: Settings | None) -> AsyncIterator[Incarnations]:
    if place is None:
        yield MemoryIncarnations()
        return
    async with open_pool(dsn(place, "append")) as pool:
        yield PostgresIncarnations(pool)


async def test_a_worker_is_in_the_life_it_began_last(lives: Incarnations) -> None:
    assert await lives.current() == {}
    for owner in ("worker-0/a", "worker-1/a", "worker-0/b", "worker-0/b"):
        await lives.begin(owner)
    current = await lives.current()
    assert current == {"worker-0": "worker-0/b", "worker-1": "worker-1/a"}
    over = {o for o in ("worker-0/a", "worker-0/b", "worker-1/a", "x/1") if is_over(o, current)}
    assert over == {"worker-0/a"}


async def test_a_process_whose_name_another_has_is_told(lives: Incarnations) -> None:
    await lives.begin("worker-0/a")
    await check(lives, "worker-0/a")
    await lives.begin("worker-0/b")
    with pytest.raises(Superseded, match="superseded by worker-0/b"):
        await check(lives, "worker-0/a")
