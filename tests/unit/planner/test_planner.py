"""The planner, from the trigger to the end of an execution, on a log in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from streams.errors import Unavailable
from streams.execution.plan import COMPLETED, FAILED, PARTIAL
from streams.playbook.expressions import compile_value
from streams.playbook.model import Arc, FramePolicy, Mode, Step, Task
from streams.work.item import WorkItem
from streams.work.memory import MemoryWorkQueue
from streams.worker.input import Documents
from tests.unit.planner.world import World, loop, playbook, step


async def test_one_step_runs_from_its_trigger_to_its_end() -> None:
    world = World(playbook(step("hello")))
    await world.start()
    (item,) = world.take()
    assert (item.kind, item.step, item.tool, item.version) == ("command", "hello", "noop", 1)
    await world.complete(item, {"greeting": "hi"})
    assert await world.types() == [
        "playbook.initialized",
        "workflow.initialized",
        "step.enter",
        "command.issued",
        "command.claimed",
        "command.completed",
        "step.exit",
        "workflow.completed",
        "playbook.completed",
    ]
    plan = await world.plan()
    assert plan.status == COMPLETED
    assert plan.result == {"status": "success", "data": {"greeting": "hi"}, "meta": {}}


async def test_routing_steps_need_no_worker_and_one_append() -> None:
    world = World(playbook(step("start", "middle", tool=None), step("middle", tool=None)))
    await world.start()
    assert (await world.plan()).status == COMPLETED
    assert world.take() == []


async def test_an_arc_is_taken_by_what_the_step_returned() -> None:
    arcs = (
        Arc(step="big", when=compile_value("{{ count.data.n > 10 }}")),
        Arc(step="small", args=compile_value({"n": "{{ count.data.n }}"})),
    )
    world = World(playbook(step("count", *arcs), step("big"), step("small")))
    await world.start()
    await world.complete(world.take()[0], {"n": 3})
    (item,) = world.take()
    assert item.step == "small"
    assert item.document is not None
    assert item.document["input"]["args"] == {"n": 3}


async def test_inclusive_arcs_are_all_taken_and_the_end_waits_for_all() -> None:
    world = World(
        playbook(step("start", "a", "b", tool=None, inclusive=True), step("a"), step("b"))
    )
    await world.start()
    a, b = world.take()
    assert {a.step, b.step} == {"a", "b"}
    await world.complete(a)
    assert not (await world.plan()).has_ended
    await world.complete(b)
    assert (await world.plan()).status == COMPLETED


async def test_a_failed_step_fails_the_execution_and_names_the_step_and_the_error() -> None:
    world = World(playbook(step("load", "next"), step("next")))
    await world.start()
    await world.fail(world.take()[0], "connection refused")
    plan = await world.plan()
    assert plan.status == FAILED
    assert plan.error == "step load: connection refused"
    assert world.take() == []


async def test_an_error_is_handled_by_an_arc_that_asks_about_the_step() -> None:
    handled = Arc(step="repair", when=compile_value("{{ load.status == 'error' }}"))
    world = World(playbook(step("load", handled, Arc(step="next")), step("repair"), step("next")))
    await world.start()
    await world.fail(world.take()[0], "no such table")
    (item,) = world.take()
    assert item.step == "repair"
    await world.complete(item)
    assert (await world.plan()).status == COMPLETED


async def test_on_error_continue_ends_partial_and_says_what_went_wrong() -> None:
    world = World(playbook(step("load", "next", on_error="continue"), step("next")))
    await world.start()
    await world.fail(world.take()[0], "no")
    await world.complete(world.take()[0])
    plan = await world.plan()
    assert (plan.status, plan.error) == (PARTIAL, "step load: no")


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
    await world.planner.adopt([world.execution_id])
    after = world.take()
    assert after == before
    for _ in range(2):
        for item in after:
            await world.commit(item)
        after = world.take()
    assert (await world.plan()).status == COMPLETED


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


async def test_a_large_collection_travels_as_a_reference() -> None:
    items = [{"name": "x" * 100, "n": n} for n in range(500)]
    world = World(playbook(step("each", loop=loop("{{ workload.rows }}"), reads=frozenset())))
    await world.start({"rows": items})
    item = world.take()[0]
    assert item.document is None
    assert item.document_ref is not None
    assert item.document_ref.byte_length > 50_000
    assert len(item.encode()) < 2_000


async def test_a_child_playbook_returns_its_result_to_the_parent() -> None:
    world = World(playbook(step("call", tool="playbook")))
    child = playbook(step("inner"), returns=compile_value({"sum": "{{ inner.data.n + 1 }}"}))
    world.playbooks.all[8] = type(child)(
        name="child", path="tests/child", steps=child.steps, first="inner", returns=child.returns
    )
    parent = world.playbooks.all[7].steps["call"]
    task = parent.tasks[0]
    call = type(task)(
        label="call",
        kind="playbook",
        config=compile_value({"path": "tests/child", "args": {"a": 1}}),
    )
    world.playbooks.all[7] = playbook(type(parent)(name="call", tasks=(call,)))
    await world.start()
    (item,) = world.take()
    assert item.step == "inner"
    parent_id, world.execution_id = world.execution_id, item.execution_id
    await world.complete(item, {"n": 41})
    world.execution_id = parent_id
    plan = await world.plan()
    assert plan.status == COMPLETED
    assert plan.result["data"] == {"sum": 42}


async def test_an_unknown_child_fails_its_step() -> None:
    task = step("call", tool="playbook")
    world = World(playbook(task))
    await world.start()
    assert (await world.plan()).status == FAILED


async def test_the_outcome_is_sent_to_whoever_asked_once() -> None:
    world = World(playbook(step("hello")))
    await world.start(reply_to="answers")
    await world.complete(world.take()[0], 5)
    ((topic, execution_id, body),) = world.replies.sent
    assert (topic, execution_id, body["status"]) == ("answers", world.execution_id, COMPLETED)
    assert (await world.types())[-1] == "reply.sent"


async def test_a_cancelled_execution_stays_cancelled() -> None:
    world = World(playbook(step("hello")))
    await world.start()
    world.take()
    await world.append("execution.cancelled", status="CANCELLED", meta={"by": "someone"})
    await world.pump()
    assert (await world.plan()).status == "CANCELLED"
    assert world.execution_id not in world.planner.plans


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


async def test_a_shard_that_is_closed_early_is_counted_once_with_its_failed_rows() -> None:
    fanout = loop(list(range(10)), mode=Mode.FANOUT, policy=FramePolicy(size=5))
    world = World(playbook(step("each", loop=fanout, on_error="continue")))
    await world.start()
    first, second = world.take()
    rest = {"kind": "list", "from": 2, "to": 5}
    await world.commit(first, rows=2, failed=1, continues=True, cursor=rest)
    assert (await world.plan()).fanouts["each"]["failed"] == 0
    (again,) = world.take()
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
    await world.planner.adopt([world.execution_id])
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


async def test_set_and_ctx_reach_later_steps() -> None:
    first = step("first", "second", sets=compile_value({"total": "{{ first.data.n * 2 }}"}))
    world = World(playbook(first, step("second", reads=frozenset({"ctx"}))))
    await world.start()
    await world.complete(world.take()[0], {"n": 4}, ctx={"seen": "yes"})
    (item,) = world.take()
    assert item.document is not None
    assert item.document["input"]["ctx"] == {"seen": "yes", "total": 8}


@pytest.mark.parametrize("rounds", [3])
async def test_a_cycle_of_steps_runs_as_often_as_its_condition_holds(rounds: int) -> None:
    back = Arc(step="work", when=compile_value("{{ work.data.n < 3 }}"))
    world = World(playbook(step("work", back)))
    await world.start()
    for n in range(1, rounds + 1):
        await world.complete(world.take()[0], {"n": n})
    assert (await world.plan()).status == COMPLETED
    assert (await world.types()).count("step.enter") == rounds


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
    await world.planner.adopt([world.execution_id])

    queue.is_down = True
    with pytest.raises(Unavailable):
        await world.after(66)  # its worker fell silent
    queue.is_down = False
    await world.after(1)
    await world.after(1)

    assert [(one.entity_id, one.attempt) for one in world.take()] == [(item.entity_id, 2)]


async def test_an_execution_that_is_cancelled_takes_its_children_along() -> None:
    call = Task(label="call", kind="playbook", config=compile_value({"path": "tests/child"}))
    world = World(playbook(replace(step("call"), tasks=(call,))))
    world.playbooks.all[8] = replace(playbook(step("inner")), path="tests/child")
    await world.start()
    (item,) = world.take()
    await world.append("execution.cancelled", status="CANCELLED", meta={"by": "someone"})
    await world.pump()
    child = await world.plan(item.execution_id)
    assert child.status == "CANCELLED"
    assert str(world.execution_id) in (child.error or "")
    assert not world.planner.plans


async def test_a_child_that_ended_stays_as_it_is() -> None:
    call = Task(label="call", kind="playbook", config=compile_value({"path": "tests/child"}))
    fails = Step(name="after", when=compile_value("{{ call.nothing.there }}"))
    calls = replace(step("call", "after"), tasks=(call,))
    world = World(playbook(calls, fails))
    world.playbooks.all[8] = replace(playbook(step("inner")), path="tests/child")
    await world.start()
    parent_id = world.execution_id
    (item,) = world.take()
    world.execution_id = item.execution_id
    await world.complete(item, 1)
    assert (await world.plan(parent_id)).status == FAILED
    assert (await world.plan(item.execution_id)).status == COMPLETED
