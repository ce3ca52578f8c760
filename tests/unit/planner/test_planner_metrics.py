"""What a planner reports: frames that wait, executions that are open or have ended."""

from __future__ import annotations

import orjson

from streams.execution.plan import Plan
from streams.metrics.metric import Distribution
from streams.planner.table_rows import FORMAT, PlanWrites, SavedPlan, add_changes, stored_watch
from streams.playbook.model import FramePolicy, Mode
from tests.support.planner.memory import World, loop, playbook, step


def reported(world: World) -> dict[tuple[str, ...], float | Distribution]:
    return {(one.metric.name, *one.labels): one.value for one in world.planner.samples()}


def backlog(world: World, kind: str = "loop") -> float | Distribution:
    return reported(world)["frame_backlog_total", kind]


async def test_the_backlog_counts_frames_that_nobody_has_claimed_and_those_to_come() -> None:
    world = World(playbook(step("each", loop=loop(list(range(95)), max_in_flight=4))))
    assert backlog(world) == 0
    await world.start()
    first, *_ = world.take()
    assert backlog(world) == 10
    await world.claim(first)
    await world.pump()
    assert backlog(world) == 9
    assert backlog(world, "fanout") == 0


async def test_the_backlog_falls_to_zero_and_the_end_is_counted_once() -> None:
    world = World(playbook(step("each", loop=loop(list(range(35)), max_in_flight=2))))
    await world.start()
    world.clock.advance(7)
    seen = []
    while items := world.take():
        for item in items:
            await world.commit(item)
            seen.append(backlog(world))
    assert seen == [3, 2, 1, 0]
    found = reported(world)
    ended = found["noetl_execution_seconds", "COMPLETED"]
    assert isinstance(ended, Distribution)
    assert (sum(ended.counts), ended.total) == (1, 7.0)
    assert found["noetl_open_executions",] == 0


async def test_shards_of_a_fanout_are_counted_apart() -> None:
    fanout = loop(["a", "b", "c"], mode=Mode.FANOUT, policy=FramePolicy())
    world = World(playbook(step("each", loop=fanout)))
    await world.start()
    assert (backlog(world), backlog(world, "fanout")) == (0, 3)


async def test_a_planner_that_takes_over_reports_what_the_former_one_stored() -> None:
    world = World(playbook(step("each", loop=loop(list(range(95)), max_in_flight=4))))
    await world.start()
    plan = await world.plan()
    (row,) = [value for value in _stored(plan).values() if value is not None]

    watch = stored_watch(row)

    assert watch is not None
    assert watch.backlog == (("loop", 10),)
    head, _, body = row.partition(b"\n")
    of_an_earlier_release = FORMAT + orjson.dumps(orjson.loads(head[1:])[:4]) + b"\n" + body
    earlier = stored_watch(of_an_earlier_release)
    assert earlier is not None
    assert (earlier.absorbed_through, earlier.backlog) == (watch.absorbed_through, ())


def _stored(plan: Plan) -> dict[bytes, bytes | None]:
    writes = PlanWrites()
    add_changes(writes, plan.execution_id, None, SavedPlan(plan, None))
    return writes.executions
