"""The planner lays a loop out in frames, and a fan-out in shards."""

from __future__ import annotations

from typing import Any

import pytest

from streams.execution.plan import COMPLETED, FAILED, PARTIAL
from streams.kafka.work.item import WorkItem
from streams.playbook.expressions import compile_value
from streams.playbook.model import Cursor, FramePolicy, Mode
from streams.worker.attempt.input import Documents
from tests.support.planner.memory import World, loop, playbook, step


async def test_a_loop_becomes_frames_within_the_window() -> None:
    world = World(playbook(step("each", loop=loop(list(range(95)), max_in_flight=4))))
    await world.start()
    first = world.take()
    assert [item.cursor for item in first] == [
        {"kind": "list", "from": n * 10, "to": n * 10 + 10} for n in range(4)
    ]
    for item in first:
        await world.commit(item)
    later = world.take()
    assert len(later) == 4
    for item in later:
        await world.commit(item)
    for item in world.take():
        await world.commit(item)
    plan = await world.plan()
    assert plan.status == COMPLETED
    assert plan.result["data"] == {"total": 95, "completed": 95, "failed": 0, "frames": 10}
    assert plan.loops["each"]["completed"] is True
    types = await world.types()
    assert types.count("frame.dispatched") == 10
    assert types.count("loop.done") == 1


async def test_an_empty_loop_closes_at_once() -> None:
    world = World(playbook(step("each", loop=loop([]))))
    await world.start()
    assert (await world.plan()).status == COMPLETED


async def test_a_loop_over_no_list_fails_and_says_so() -> None:
    world = World(playbook(step("each", loop=loop("{{ workload.n }}"))))
    await world.start({"n": 5})
    plan = await world.plan()
    assert plan.status == FAILED
    assert "must give a list" in (plan.error or "")


async def test_sequential_loops_have_one_frame_in_flight() -> None:
    world = World(playbook(step("each", loop=loop(list(range(30)), mode=Mode.SEQUENTIAL))))
    await world.start()
    assert len(world.take()) == 1


async def test_frame_policy_null_is_one_row_a_frame() -> None:
    world = World(playbook(step("each", loop=loop([1, 2, 3], policy=None))))
    await world.start()
    assert [item.cursor for item in world.take()] == [
        {"kind": "list", "from": n, "to": n + 1} for n in range(3)
    ]


async def test_failed_rows_fail_the_execution_and_are_named() -> None:
    world = World(playbook(step("each", loop=loop(list(range(20)))), step("next")))
    await world.start()
    first, second = world.take()
    await world.commit(first, failed=2)
    await world.commit(second)
    plan = await world.plan()
    assert plan.status == FAILED
    assert "2 of 20 rows failed" in (plan.error or "")
    assert "row 0 (x) in task save: no" in (plan.error or "")


async def test_failed_rows_stop_new_windows() -> None:
    world = World(playbook(step("each", loop=loop(list(range(1000)), max_in_flight=2))))
    await world.start()
    first, second = world.take()
    await world.commit(first, failed=1)
    assert world.take() == []
    await world.commit(second)
    assert (await world.plan()).status == FAILED


async def test_a_continuation_gets_the_rest_of_the_window() -> None:
    world = World(playbook(step("each", loop=loop(list(range(10))))))
    await world.start()
    (item,) = world.take()
    rest = {"kind": "list", "from": 4, "to": 10}
    await world.commit(item, rows=4, continues=True, cursor=rest)
    (more,) = world.take()
    assert more.cursor == rest
    assert more.entity_id != item.entity_id
    await world.commit(more)
    plan = await world.plan()
    assert plan.status == COMPLETED
    assert plan.result["data"]["completed"] == 10


async def test_a_large_collection_travels_as_a_reference() -> None:
    items = [{"name": "x" * 100, "n": n} for n in range(500)]
    world = World(playbook(step("each", loop=loop("{{ workload.rows }}"), reads=frozenset())))
    await world.start({"rows": items})
    item = world.take()[0]
    assert item.document is None
    assert item.document_ref is not None
    assert item.document_ref.byte_length > 50_000
    assert len(item.encode()) < 2_000


async def test_a_deployment_says_what_stays_in_events() -> None:
    for inline_bytes, is_inline in ((65_536, True), (100, False)):
        steps = step("each", loop=loop("{{ workload.rows }}"), reads=frozenset())
        world = World(playbook(steps), inline_bytes=inline_bytes)
        await world.start({"rows": ["x" * 100, "y"]})
        item = world.take()[0]
        assert (item.document is not None, item.document_ref is None) == (is_inline, is_inline)


async def test_a_fanout_has_a_shard_for_each_row_and_a_fan_in() -> None:
    fanout = loop(["a", "b", "c"], mode=Mode.FANOUT, policy=FramePolicy())
    world = World(playbook(step("each", loop=fanout)))
    await world.start()
    items = world.take()
    assert len(items) == 3
    assert all(item.shard_id for item in items)
    for item in items:
        await world.commit(item)
    plan = await world.plan()
    assert plan.fanouts["each"] == {
        "loop_id": plan.fanouts["each"]["loop_id"],
        "total_shards": 3,
        "done": 3,
        "failed": 0,
        "status": "completed",
    }


async def test_a_shard_with_a_failed_row_has_failed() -> None:
    fanout = loop(["a", "b", "c"], mode=Mode.FANOUT, policy=FramePolicy())
    world = World(playbook(step("each", loop=fanout, on_error="continue")))
    await world.start()
    first, *others = world.take()
    await world.commit(first, failed=1)
    for item in others:
        await world.commit(item)
    plan = await world.plan()
    assert plan.status == PARTIAL
    shown = plan.fanouts["each"]
    assert (shown["done"], shown["failed"], shown["status"]) == (2, 1, "partial")


@pytest.mark.parametrize("has_checkpoint", [False, True])
async def test_a_shard_that_is_closed_early_is_counted_once_with_its_failed_rows(
    has_checkpoint: bool,
) -> None:
    fanout = loop(list(range(10)), mode=Mode.FANOUT, policy=FramePolicy(size=5))
    world = World(playbook(step("each", loop=fanout, on_error="continue")))
    await world.start()
    first, second = world.take()
    rest = {"kind": "list", "from": 2, "to": 5}
    await world.commit(first, rows=2, failed=1, continues=True, cursor=rest)
    assert (await world.plan()).fanouts["each"]["failed"] == 0
    (again,) = world.take()
    if has_checkpoint:
        await world.claim(again)
        await world.checkpoint(again, 1, None)
    await world.commit(again)
    await world.commit(second)
    shown = (await world.plan()).fanouts["each"]
    assert (shown["total_shards"], shown["done"], shown["failed"]) == (2, 1, 1)


@pytest.mark.parametrize(("mode", "seen"), [(Mode.SEQUENTIAL, {"n": 1}), (Mode.PARALLEL, None)])
async def test_changes_of_ctx_reach_later_frames_where_rows_have_an_order(
    mode: Mode, seen: dict[str, int] | None
) -> None:
    window = None if mode is Mode.SEQUENTIAL else 2
    each = loop(list(range(30)), mode=mode, max_in_flight=window)
    world = World(playbook(step("each", loop=each)))
    await world.start()
    await world.commit(world.take()[0], ctx={"n": 1})
    (item,) = world.take()
    assert item.ctx == seen
    world.planner = world.new_planner()  # and a planner that begins anew says the same
    await world.planner.adopt({world.execution_id: 0})
    assert world.take()[0].ctx == seen


async def test_changes_of_ctx_that_are_large_travel_as_a_payload() -> None:
    each = loop(list(range(20)), mode=Mode.SEQUENTIAL)
    world = World(playbook(step("each", loop=each)))
    await world.start()
    await world.commit(world.take()[0], ctx={"text": "x" * 20_000})
    (item,) = world.take()
    assert item.ctx is None
    assert WorkItem.decode(item.encode()) == item
    documents = Documents(world.payloads)
    scope = await documents.scope(item, await documents.document(item), ())
    assert scope["ctx"] == {"text": "x" * 20_000}


@pytest.mark.parametrize(
    ("form", "planned", "firsts"),
    [
        ("keyset", {"type": "int8", "boundaries": ["5", "9"], "counts": [4, 7], "rows": 7}, [0, 4]),
        ("offsets", {"ranges": [[0, 0, 3], [0, 3, 5], [1, 8, 9]], "rows": 6}, [0, 3, 5]),
        ("keyset", {"type": "int8", "boundaries": ["5", "9"], "rows": 7}, [0, 0]),
    ],
)
async def test_the_first_row_of_each_planned_window_has_its_number(
    form: str, planned: dict[str, Any], firsts: list[int]
) -> None:
    source = Cursor(kind="postgres", form=form, config=compile_value({}))
    world = World(playbook(step("each", loop=loop(None, mode=Mode.CURSOR, cursor=source))))
    await world.start()
    (planning,) = world.take()
    await world.complete(planning, planned)
    assert [(item.cursor or {}).get("first", 0) for item in world.take()] == firsts
