"""What every keeper of workers' incarnations promises, in memory and in Postgres alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from streams.app import open_pool
from streams.log.worker_incarnations import (
    Incarnations,
    MemoryIncarnations,
    PostgresIncarnations,
    Superseded,
    begin,
    check,
    is_over,
)
from streams.settings import Settings
from tests.support.log.databases import dsn


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.stack)])
def place(request: pytest.FixtureRequest) -> Settings | None:
    return None if request.param == "memory" else request.getfixturevalue("fresh_database")


@pytest.fixture
async def incarnations(place: Settings | None) -> AsyncIterator[Incarnations]:
    if place is None:
        yield MemoryIncarnations()
        return
    async with open_pool(dsn(place, "append")) as pool:
        yield PostgresIncarnations(pool)


async def test_a_worker_is_in_the_life_it_began_last(incarnations: Incarnations) -> None:
    assert await incarnations.current() == {}
    for owner in ("worker-0/a", "worker-1/a", "worker-0/b", "worker-0/b"):
        await begin(incarnations, owner)
    current = await incarnations.current()
    assert current == {"worker-0": "worker-0/b", "worker-1": "worker-1/a"}
    over = {o for o in ("worker-0/a", "worker-0/b", "worker-1/a", "x/1") if is_over(o, current)}
    assert over == {"worker-0/a"}


async def test_a_process_whose_name_another_has_is_told(incarnations: Incarnations) -> None:
    await begin(incarnations, "worker-0/a")
    await check(incarnations, "worker-0/a")
    await begin(incarnations, "worker-0/b")
    with pytest.raises(Superseded, match="superseded by worker-0/b"):
        await check(incarnations, "worker-0/a")


@pytest.mark.parametrize("before", [None, "worker-0/before"])
async def test_a_late_registration_of_a_dead_process_changes_nothing(
    incarnations: Incarnations, before: str | None
) -> None:
    if before is not None:
        await begin(incarnations, before)
    read = (await incarnations.current()).get("worker-0")
    await begin(incarnations, "worker-0/live")
    assert not await incarnations.replace(read, "worker-0/dead")
    await check(incarnations, "worker-0/live")


@pytest.mark.parametrize("before", [None, "worker-0/before"])
async def test_a_process_registers_over_a_late_registration(
    incarnations: Incarnations, before: str | None
) -> None:
    if before is not None:
        await begin(incarnations, before)
    await begin(_Overtaken(incarnations, "worker-0/dead"), "worker-0/live")
    await check(incarnations, "worker-0/live")


async def test_a_registration_whose_response_was_lost_can_be_repeated(
    incarnations: Incarnations,
) -> None:
    assert await incarnations.replace(None, "worker-0/a")
    assert not await incarnations.replace(None, "worker-0/a")
    await begin(incarnations, "worker-0/a")
    await check(incarnations, "worker-0/a")


async def test_a_registration_expects_an_incarnation_that_is_stored(
    incarnations: Incarnations,
) -> None:
    assert not await incarnations.replace("worker-0/a", "worker-0/b")
    assert await incarnations.current() == {}


async def test_of_processes_that_register_at_once_one_is_the_newest(
    incarnations: Incarnations,
) -> None:
    owners = [f"worker-0/{number}" for number in range(8)]
    await asyncio.gather(*(begin(incarnations, owner) for owner in owners))
    current = await incarnations.current()
    assert sum(not is_over(owner, current) for owner in owners) == 1


class _Overtaken:
    """Incarnations where another process's request arrives after the first read."""

    def __init__(self, incarnations: Incarnations, other: str) -> None:
        self._incarnations, self._other = incarnations, other
        self._has_arrived = False

    async def current(self) -> Mapping[str, str]:
        found = await self._incarnations.current()
        if not self._has_arrived:
            self._has_arrived = True
            assert await self._incarnations.replace(found.get("worker-0"), self._other)
        return found

    async def replace(self, previous: str | None, owner: str) -> bool:
        return await self._incarnations.replace(previous, owner)
