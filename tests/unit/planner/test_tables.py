"""The planner's tables give back what they were given, and forget what they cannot read."""

from __future__ import annotations

from pathlib import Path

from streams.execution.plan import Plan
from streams.planner.tables import PlanTables
from tests.support.planner.memory import World, loop, playbook, step


async def _running() -> tuple[World, Plan]:
    world = World(playbook(step("each", loop=loop(list(range(40)), max_in_flight=3))))
    await world.start({"a": [1, {"b": None}]})
    first, *others = world.take()
    world.queue.published[:] = others
    await world.claim(first)
    await world.pump()
    return world, world.planner.plans[world.execution_id]


async def test_a_plan_survives_a_restart_whole(tmp_path: Path) -> None:
    _, plan = await _running()
    tables = PlanTables(tmp_path / "plans")
    tables.save([plan], [])
    tables.close()
    tables = PlanTables(tmp_path / "plans")
    assert tables.load() == {plan.execution_id: plan}
    tables.close()


async def test_only_what_is_open_is_kept(tmp_path: Path) -> None:
    world, plan = await _running()
    tables = PlanTables(tmp_path / "plans")
    tables.save([plan], [])
    await world.commit(world.take()[0])
    later = world.planner.plans[world.execution_id]
    assert later != plan
    tables.save([later], [])
    assert tables.load() == {later.execution_id: later}
    tables.save([], [later.execution_id])
    assert tables.load() == {}
    tables.close()


async def test_tables_of_another_format_are_made_anew(tmp_path: Path) -> None:
    _, plan = await _running()
    tables = PlanTables(tmp_path / "plans")
    tables.save([plan], [])
    tables._db[b"format"] = b"plans/0"
    tables.close()
    tables = PlanTables(tmp_path / "plans")
    assert tables.load() == {}
    tables.close()
