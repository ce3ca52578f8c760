"""The planner's tables return what was saved, and nothing that cannot be read whole."""

from __future__ import annotations

import pytest

from streams.execution.plan import Plan
from streams.kafka.tables.memory import MemoryTables
from streams.kafka.tables.port import Changes, PartitionLost, TablesUnavailable
from streams.planner import table_rows
from streams.planner.table_rows import EXECUTIONS, FRAMES, STAGES
from streams.planner.tables import PlanTables
from streams.planner.watches import watch_of
from tests.support.planner.memory import World, loop, playbook, step


async def _running() -> tuple[World, Plan]:
    world = World(playbook(step("each", loop=loop(list(range(40)), max_in_flight=3))))
    await world.start({"a": [1, {"b": None}]})
    first, *others = world.take()
    world.queue.published[:] = others
    await world.claim(first)
    await world.pump()
    return world, world.planner.plans[world.execution_id]


def _opened(stored: MemoryTables) -> PlanTables:
    return PlanTables(stored, lambda _: 0)


async def _saved(stored: MemoryTables, plan: Plan) -> PlanTables:
    tables = _opened(stored)
    tables.save([(plan, None)], [])
    await tables.flush()
    return tables


async def test_a_plan_survives_a_restart_whole() -> None:
    _, plan = await _running()
    stored = MemoryTables()
    await _saved(stored, plan)
    assert plan.stages
    assert _opened(stored).get(plan.execution_id) == plan


async def test_a_restart_reads_when_to_look_at_each_execution() -> None:
    world, plan = await _running()
    stored, wake_at = MemoryTables(), world.clock.now()
    tables = _opened(stored)
    tables.save([(plan, wake_at)], [])
    await tables.flush()
    (watch,) = _opened(stored).watches().values()
    assert watch == watch_of(plan, wake_at)
    assert (watch.wake_at, len(watch.owners), watch.is_waiting) == (wake_at, 1, True)


async def test_a_plan_is_released_once_it_is_written() -> None:
    world, plan = await _running()
    stored = MemoryTables()
    tables = await _saved(stored, plan)
    await world.commit(world.take()[0])
    later = world.planner.plans[world.execution_id]
    tables.save([(later, None)], [])
    assert not tables.release(later)
    assert tables.get(plan.execution_id) is later
    await tables.flush()
    assert not tables.release(plan)
    assert tables.release(later)
    assert tables.get(plan.execution_id) == later


async def test_only_what_is_open_is_stored() -> None:
    world, plan = await _running()
    stored = MemoryTables()
    tables = await _saved(stored, plan)
    await world.commit(world.take()[0])
    later = world.planner.plans[world.execution_id]
    assert later != plan
    tables.save([(later, None)], [])
    await tables.flush()
    assert _opened(stored).get(later.execution_id) == later
    tables.save([], [later.execution_id])
    await tables.flush()
    assert _opened(stored).get(plan.execution_id) is None
    assert not [*stored.scan(0, STAGES), *stored.scan(0, FRAMES)]


async def test_of_several_changes_only_the_last_is_written() -> None:
    world, plan = await _running()
    stored = MemoryTables()
    tables = _opened(stored)
    tables.save([(plan, None)], [])
    await world.commit(world.take()[0])
    later = world.planner.plans[world.execution_id]
    tables.save([(later, None)], [])
    await tables.flush()
    assert _opened(stored).get(later.execution_id) == later


@pytest.mark.parametrize("table", [STAGES, FRAMES])
async def test_a_plan_without_one_of_its_parts_is_not_loaded(table: str) -> None:
    _, plan = await _running()
    stored = MemoryTables()
    await _saved(stored, plan)
    key, _ = next(stored.scan(0, table))
    await stored.write(0, {table: {key: None}})
    assert _opened(stored).get(plan.execution_id) is None


@pytest.mark.parametrize("value", [b"6{}", b"7{", b""])
async def test_values_of_another_format_are_ignored(value: bytes) -> None:
    _, plan = await _running()
    stored = MemoryTables()
    await _saved(stored, plan)
    await stored.write(0, {EXECUTIONS: {b"%d" % plan.execution_id: value}})
    assert _opened(stored).watches() == {}
    assert _opened(stored).get(plan.execution_id) is None


async def test_a_plan_with_a_part_too_large_for_a_record_is_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, plan = await _running()
    stored = MemoryTables()
    tables = await _saved(stored, plan)
    monkeypatch.setattr(table_rows, "MAX_VALUE_BYTES", 10)
    await world.commit(world.take()[0])
    later = world.planner.plans[world.execution_id]
    tables.save([(later, None)], [])
    await tables.flush()
    assert _opened(stored).get(plan.execution_id) is None
    monkeypatch.undo()
    tables.save([(later, None)], [])
    await tables.flush()
    assert _opened(stored).get(later.execution_id) == later


class _Failing(MemoryTables):
    """Raises an error once, before or after the write."""

    def __init__(self, error: Exception, *, is_written: bool) -> None:
        super().__init__()
        self._errors, self._is_written = [error], is_written

    async def write(self, partition: int, changes: Changes) -> None:
        if self._is_written or not self._errors:
            await super().write(partition, changes)
        if self._errors:
            raise self._errors.pop()


@pytest.mark.parametrize("is_written", [True, False])
async def test_a_failed_flush_can_be_repeated(is_written: bool) -> None:
    _, plan = await _running()
    stored = _Failing(TablesUnavailable("down"), is_written=is_written)
    tables = _opened(stored)
    tables.save([(plan, None)], [])
    with pytest.raises(TablesUnavailable):
        await tables.flush()
    await tables.flush()
    assert _opened(stored).get(plan.execution_id) == plan


async def test_changes_of_a_lost_partition_are_dropped() -> None:
    _, plan = await _running()
    stored = _Failing(PartitionLost("revoked"), is_written=False)
    tables = _opened(stored)
    tables.save([(plan, None)], [])
    await tables.flush()
    await tables.flush()
    assert _opened(stored).get(plan.execution_id) is None


async def test_a_plan_cannot_be_read_while_its_partition_is_being_assigned() -> None:
    _, plan = await _running()
    stored = MemoryTables()
    tables = await _saved(stored, plan)
    assert tables.release(plan)
    stored.owned = frozenset()
    with pytest.raises(TablesUnavailable, match="partition 0 is being assigned"):
        tables.get(plan.execution_id)
