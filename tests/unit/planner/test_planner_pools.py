"""The pool of an execution: steps that name none are worked on there."""

from __future__ import annotations

from streams.playbook.model import Playbook
from tests.support.planner.memory import World, loop, playbook, step


def two_steps() -> Playbook:
    return playbook(step("start", "own"), step("own", pool="gpu"))


async def pools(world: World) -> list[str]:
    await world.pump()
    (first,) = world.take()
    await world.claim(first)
    await world.complete(first)
    await world.pump()
    (second,) = world.take()
    return [first.pool, second.pool]


async def test_steps_that_name_no_pool_use_that_of_the_execution() -> None:
    world = World(two_steps())
    await world.start(pool="billing")
    assert await pools(world) == ["billing", "gpu"]


async def test_an_execution_without_a_pool_uses_that_of_the_playbook() -> None:
    world = World(two_steps())
    await world.start()
    assert await pools(world) == ["default", "gpu"]


async def test_frames_are_worked_on_in_the_pool_of_the_execution() -> None:
    world = World(playbook(step("start", loop=loop([1, 2]))))
    await world.start(pool="billing")
    await world.pump()
    assert {item.pool for item in world.take()} == {"billing"}
