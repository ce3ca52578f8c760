"""Plans of open executions: recent ones in memory, others in the tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.execution.plan import Plan
from streams.kafka.tables.memory import MemoryTables
from streams.planner.open_plans import OpenPlans, PlanLost
from streams.planner.table_rows import EXECUTIONS
from streams.planner.tables import PlanTables
from tests.support.planner.memory import World, playbook, step


async def _plans(count: int) -> list[Plan]:
    world = World(playbook(step("hello")))
    await world.start()
    plan = world.planner.plans[world.execution_id]
    return [replace(plan, execution_id=number) for number in range(1, count + 1)]


async def test_plans_longest_unused_leave_memory_once_they_are_written() -> None:
    stored = MemoryTables()
    tables, plans = PlanTables(stored, lambda _: 0), await _plans(10)
    open_plans = OpenPlans(tables, recent=3)
    for plan in plans:
        open_plans.put(plan)
        open_plans.save([(plan, None)], [])
    assert len(open_plans._recent) == 10, "none is written yet"
    await tables.flush()
    open_plans.save([], [])
    assert len(open_plans._recent) < 10
    assert [open_plans[number] for number in range(1, 11)] == plans
    assert len(open_plans._recent) <= 4
    assert sorted(open_plans) == list(range(1, 11))


async def test_a_plan_that_was_dropped_is_not_open() -> None:
    (plan,) = await _plans(1)
    open_plans = OpenPlans(PlanTables(MemoryTables(), lambda _: 0))
    open_plans.put(plan)
    open_plans.drop(plan.execution_id)
    assert (open_plans.get(plan.execution_id), len(open_plans)) == (None, 0)


async def test_a_plan_that_the_tables_lost_is_reported() -> None:
    stored = MemoryTables()
    open_plans = OpenPlans(PlanTables(stored, lambda _: 0))
    open_plans.add_stored(7)
    await stored.write(0, {EXECUTIONS: {b"7": b"unreadable"}})
    with pytest.raises(PlanLost, match="the tables lost a part of its plan"):
        open_plans[7]
