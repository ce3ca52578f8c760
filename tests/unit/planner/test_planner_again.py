"""The planner does things again: after a lease, a crash, or a broker that was down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from streams.errors import Unavailable
from streams.events.model import Event, Root
from streams.execution.plan import COMPLETED, FAILED
from streams.kafka.tables.memory import MemoryTables
from streams.kafka.work.item import WorkItem
from streams.kafka.work.memory import MemoryWorkQueue
from streams.planner.open_plans import PlanLost
from streams.planner.table_rows import EXECUTIONS, FRAMES, STAGES, TABLES
from streams.planner.tables import PlanTables
from tests.support.planner.memory import World, loop, playbook, step


async def test_a_lease_that_runs_out_sends_the_frame_to_someone_else() -> None:
    world = World(playbook(step("each", loop=loop([1]))))
    await world.start()
    (item,) = world.take()
    await world.claim(item, "silent")
    await world.pump()
    await world.after(64)
    assert world.take() == []
    await world.after(2)
    (again,) = world.take()
    assert (again.entity_id, again.attempt) == (item.entity_id, 2)
    await world.commit(again)
    assert (await world.plan()).status == COMPLETED


async def test_a_frame_that_fails_too_often_is_given_up_and_named() -> None:
    world = World(playbook(step("each", loop=loop([1]))), max_attempts=2)
    await world.start()
    for _ in range(2):
        (item,) = world.take()
        await world.claim(item, "silent")
        await world.pump()
        await world.after(70)
    plan = await world.plan()
    assert plan.status == FAILED
    assert "failed 2 times: the lease of silent ran out" in (plan.error or "")


async def test_a_command_is_published_again_after_its_lease_without_a_second_issue() -> None:
    world = World(playbook(step("hello")))
    await world.start()
    (item,) = world.take()
    await world.claim(item, "silent")
    await world.pump()
    await world.after(70)
    (again,) = world.take()
    assert (again.attempt, again.version) == (2, 3)
    await world.complete(again)
    assert (await world.types()).count("command.issued") == 1
    assert (await world.plan()).status == COMPLETED


async def test_a_new_planner_goes_on_from_the_log_and_publishes_open_work_again() -> None:
    world = World(playbook(step("each", loop=loop(list(range(40)), max_in_flight=2))))
    await world.start()
    before = world.take()
    world.planner = world.new_planner()
    await world.planner.adopt({world.execution_id: 0})
    after = world.take()
    assert after == before
    for _ in range(2):
        for item in after:
            await world.commit(item)
        after = world.take()
    assert (await world.plan()).status == COMPLETED


async def _with_tables() -> tuple[World, MemoryTables, list[WorkItem]]:
    """Return a running execution whose planner has written its tables, and its work."""
    world = World(playbook(step("each", loop=loop(list(range(40)), max_in_flight=2))))
    stored = MemoryTables()
    world.tables = tables = PlanTables(stored, lambda _: 0)
    world.planner = world.new_planner()
    await world.start()
    await tables.flush()
    return world, stored, world.take()


async def _taken_over(world: World, stored: MemoryTables) -> list[int]:
    """Let a new planner take over; return after which `seq` it read the log."""
    reads: list[int] = []
    read_root = world.store.read_root

    def counted(root: Root, *, after_seq: int = 0, **more: Any) -> AsyncIterator[Event]:
        reads.append(after_seq)
        return read_root(root, after_seq=after_seq, **more)

    world.tables = PlanTables(stored, lambda _: 0)
    world.planner = world.new_planner()
    world.store.read_root = counted  # type: ignore[method-assign]
    await world.planner.adopt(await world.store.open_roots("execution"))
    world.store.read_root = read_root  # type: ignore[method-assign]
    return reads


async def test_a_new_planner_reads_nothing_that_its_tables_have() -> None:
    world, stored, before = await _with_tables()
    assert await _taken_over(world, stored) == []
    assert world.take() == [], "the earlier planner has published it"
    for item in before:
        await world.commit(item)
    for item in world.take():
        await world.commit(item)
    assert (await world.plan()).status == COMPLETED


async def test_only_executions_that_the_tables_lack_are_looked_up_for_a_suspension() -> None:
    world, stored, _ = await _with_tables()
    asked: list[list[int]] = []

    async def suspended(among: Sequence[int]) -> Mapping[int, int]:
        asked.append(list(among))
        return await world.store.suspended_executions(among)

    async def take_over() -> None:
        world.tables = PlanTables(stored, lambda _: 0)
        world.planner = world.new_planner()
        await world.planner.adopt(await world.store.open_roots("execution"), suspended)

    await take_over()
    assert asked == []
    await world.append("execution.suspended", meta={"by": "ana", "reason": "a pause"})
    await take_over()
    assert asked == [[world.execution_id]]
    assert world.execution_id not in world.planner.plans
    assert world.execution_id in world.planner.known


async def test_work_that_was_lost_is_published_again_after_a_takeover_from_tables() -> None:
    world, stored, before = await _with_tables()
    await _taken_over(world, stored)
    await world.after(29)
    assert world.take() == []
    await world.after(2)
    assert world.take() == before


async def test_a_new_planner_reads_from_where_its_tables_end() -> None:
    world, stored, (first, *_) = await _with_tables()
    (watch,) = PlanTables(stored, lambda _: 0).watches().values()
    await world.claim(first)
    assert await _taken_over(world, stored) == [watch.absorbed_through]


async def test_deciding_twice_appends_once() -> None:
    world = World(playbook(step("each", loop=loop(list(range(40)), max_in_flight=2))))
    await world.start()
    types = await world.types()
    twin = world.new_planner()
    await twin.absorb((await world.events())[:1])
    assert await world.types() == types


async def test_live_plan_and_replay_agree() -> None:
    world = World(playbook(step("each", loop=loop(list(range(40)), max_in_flight=2))))
    await world.start()
    await world.commit(world.take()[0])
    live, replayed = world.planner.plans[world.execution_id], await world.plan()
    assert (live.seq, live.ahead) == (replayed.seq, replayed.ahead)
    assert live.stages.keys() == replayed.stages.keys()
    (a,), (b,) = live.stages.values(), replayed.stages.values()
    assert (a.minted, a.rows_done, a.frames.keys()) == (b.minted, b.rows_done, b.frames.keys())


class _Queue(MemoryWorkQueue):
    is_down = False

    async def publish(self, items: Sequence[WorkItem]) -> None:
        if self.is_down:
            raise Unavailable("the broker is down")
        await super().publish(items)


async def test_what_a_broker_that_was_down_did_not_take_is_sent_again_as_soon_as_it_is_back() -> (
    None
):
    world = World(playbook(step("each", loop=loop(list(range(5))))))
    world.queue = queue = _Queue()
    world.planner = world.new_planner()
    await world.start()
    (item,) = world.take()
    await world.claim(item)
    await world.pump()
    world.planner = world.new_planner()
    await world.planner.adopt({world.execution_id: 0})

    queue.is_down = True
    with pytest.raises(Unavailable):
        await world.after(66)  # its worker fell silent
    queue.is_down = False
    await world.after(1)
    await world.after(1)

    assert [(one.entity_id, one.attempt) for one in world.take()] == [(item.entity_id, 2)]


async def test_a_large_takeover_is_done_in_parts_that_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, _, _ = await _with_tables()
    for _ in range(4):
        world.execution_id += 1
        await world.start()
    monkeypatch.setattr("streams.planner.loop._TAKEN_OVER_AT_ONCE", 2)
    world.tables = PlanTables(MemoryTables(), lambda _: 0)
    world.planner = world.new_planner()
    known: list[int] = []
    world.planner.on_progress = lambda: known.append(len(world.planner.plans))
    await world.planner.adopt(await world.store.open_roots("execution"))
    assert known == [2, 4, 5, 5]


@pytest.mark.parametrize("lost", ["all rows", "the format", "an execution's row"])
async def test_tables_filled_from_the_log_equal_those_that_were_lost(lost: str) -> None:
    world, stored, _ = await _with_tables()
    damaged = MemoryTables()
    for table in TABLES:
        rows = dict(stored.scan(0, table))
        assert rows
        if lost == "the format":
            await damaged.write(0, {table: {key: b"0" + row[1:] for key, row in rows.items()}})
        elif lost == "an execution's row" and table != EXECUTIONS:
            await damaged.write(0, {table: rows})
    await _taken_over(world, damaged)
    assert isinstance(world.tables, PlanTables)
    await world.tables.flush()
    before, after = (PlanTables(one, lambda _: 0) for one in (stored, damaged))
    assert after.get(world.execution_id) == before.get(world.execution_id)
    assert after.watches() == before.watches()


@pytest.mark.parametrize("table", [FRAMES, STAGES])
async def test_an_execution_of_which_one_table_lost_a_part_is_read_from_the_log(table: str) -> None:
    world, stored, before = await _with_tables()
    await stored.write(0, {table: {key: None for key, _ in stored.scan(0, table)}})
    assert await _taken_over(world, stored) == [], "the row of the execution is complete"
    with pytest.raises(PlanLost):
        world.planner.has_absorbed(world.execution_id, 1)
    await world.planner.read_again(world.execution_id)
    assert world.take() == before, "its work is published again"
    for item in before:
        await world.commit(item)
    for item in world.take():
        await world.commit(item)
    assert (await world.plan()).status == COMPLETED
