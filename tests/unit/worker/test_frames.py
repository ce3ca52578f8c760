from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from streams.errors import Unavailable
from streams.events.model import PayloadRef
from streams.payload.arrow.rows import decode_rows
from streams.payload.errors import PayloadUnavailable
from streams.worker.attempt.frame import FrameRunner
from streams.worker.port import Outcome
from tests.support.waiting import until
from tests.support.worker.memory import (
    EXECUTION_ID,
    Dying,
    FakeSaver,
    FakeTool,
    World,
    http_error,
    loop_step,
    ok,
    rule,
    task,
    turns,
)

ECHO = task("echo", "t", {"n": "{{ item }}"})
SAVE = task("save", "db", {"value": "{{ item }}"}, deferrable=True)


def world(*tasks: Any, **tools: Any) -> World:
    return World(loop_step(*tasks), {"t": FakeTool(), **tools})


async def outputs(here: World) -> list[Any]:
    ref = (await here.last()).payload_ref
    assert isinstance(ref, PayloadRef)
    return decode_rows(await here.payloads.get(ref))


async def test_a_frame_is_claimed_run_and_committed() -> None:
    here = world(ECHO)
    item = await here.frame(["a", "b", "c"])
    await FrameRunner(here.ports, here.options()).run(item)
    events = await here.events()
    assert [e.type for e in events] == ["frame.dispatched", "frame.claimed", "frame.committed"]
    committed = events[-1]
    assert committed.status == "success"
    assert committed.meta["rows"] == 3
    assert committed.meta["failed_rows"] == 0
    assert committed.meta["continues"] is False
    assert committed.meta["worker"] == "worker-1"
    assert committed.context == {"cursor": {"kind": "list", "from": 0, "to": 3}}
    assert await outputs(here) == [{"n": "a"}, {"n": "b"}, {"n": "c"}]


async def test_only_one_worker_wins_a_frame() -> None:
    here = world(ECHO)
    item = await here.frame(["a"])
    runners = [FrameRunner(here.ports, here.options(name=f"worker-{n}")) for n in (1, 2)]
    await asyncio.gather(*(runner.run(item) for runner in runners))
    assert len(await here.events("frame.claimed")) == 1
    assert len(here.tools["t"].calls) == 1


async def test_a_frame_of_an_ended_execution_is_dropped() -> None:
    here = world(ECHO)
    item = await here.frame(["a"])
    await here.append("execution.cancelled", item, {"by": "me"}, "end", status="cancelled")
    await FrameRunner(here.ports, here.options()).run(item)
    assert here.tools["t"].calls == []
    assert await here.events("frame.claimed") == []


async def test_a_row_sees_its_item_its_index_and_the_input() -> None:
    seen = "{{ iter.item }} {{ item }} {{ _loop.index }} {{ load.result_index }} {{ workload.w }}"
    seen += (
        " {{ ctx.c }} {{ args.a }} {{ a }} {{ before.data.x }} {{ before.x }} {{ execution_id }}"
    )
    here = world(task("echo", "t", {"seen": seen}))
    given = {
        "workload": {"w": "w"},
        "ctx": {"c": "c"},
        "args": {"a": "a"},
        "steps": {"before": {"status": "success", "data": {"x": "x"}, "meta": {}}},
    }
    cursor = {"kind": "list", "from": 1, "to": 2}
    item = await here.frame(cursor=cursor, document={"input": given, "items": ["p", "q"]})
    await FrameRunner(here.ports, here.options()).run(item)
    assert await outputs(here) == [{"seen": f"q q 1 1 w c a a x x {EXECUTION_ID}"}]


async def test_a_failed_row_does_not_fail_its_frame() -> None:
    def answer(config: Any, call: Any) -> Outcome:
        return http_error(404) if config["n"] == "b" else ok(config["n"])

    here = world(ECHO, t=FakeTool(answer))
    await FrameRunner(here.ports, here.options()).run(await here.frame(["a", "b", "c"]))
    committed = await here.last()
    assert (committed.type, committed.status) == ("frame.committed", "partial")
    assert committed.meta["rows"] == 3
    assert committed.meta["failed_rows"] == 1
    error = {"row": 1, "item": "b", "task": "echo", "error": "http.status: the server said 404"}
    assert committed.result == {"retries": 0, "errors": [error]}
    assert await outputs(here) == ["a", None, "c"]


async def test_changes_of_ctx_are_merged_in_the_order_of_the_rows() -> None:
    change = rule(None, "continue", set_ctx={"last": "{{ item }}"})
    here = world(task("a", "noop", {}, change))
    await FrameRunner(here.ports, here.options()).run(await here.frame([1, 2, 3]))
    assert (await here.last()).result["ctx"]["last"] == 3


async def test_rows_one_at_a_time_see_what_the_rows_before_them_set() -> None:
    step = task("sum", "noop", {}, rule(None, "continue", set_ctx={"sum": "{{ ctx.sum + item }}"}))
    here = world(step)
    document = {"input": {"ctx": {"sum": 0}}, "items": [1, 2, 3]}
    item = await here.frame(
        document=document,
        cursor={"kind": "list", "from": 0, "to": 3},
        policy={"row_concurrency": 1},
    )
    await FrameRunner(here.ports, here.options()).run(item)
    assert (await here.last()).result["ctx"] == {"sum": 6}


async def test_no_more_rows_run_at_once_than_the_policy_allows() -> None:
    tool = FakeTool()
    tool.gate = asyncio.Event()
    here = world(ECHO, t=tool)
    item = await here.frame(list(range(10)), policy={"row_concurrency": 3})
    running = asyncio.ensure_future(FrameRunner(here.ports, here.options()).run(item))
    await until(lambda: len(tool.calls) >= 3)
    await turns()
    assert len(tool.calls) == 3
    tool.gate.set()
    await running
    assert len(tool.calls) == 10


async def test_a_frame_out_of_time_leaves_the_rest_to_a_continuation() -> None:
    here = world(ECHO)
    slow = here.tools["t"]._answer = lambda config, call: (here.clock.advance(1.0), ok(1))[1]
    assert slow
    policy = {"duration_ms": 2000, "row_concurrency": 1}
    item = await here.frame(list(range(10)), policy=policy)
    await FrameRunner(here.ports, here.options()).run(item)
    committed = await here.last()
    assert committed.meta["rows"] == 2
    assert committed.meta["continues"] is True
    assert committed.context == {"cursor": {"kind": "list", "from": 2, "to": 10}}
    assert await outputs(here) == [1, 1]


async def test_a_frame_over_its_memory_leaves_the_rest_but_always_does_one_row() -> None:
    here = world(ECHO)
    item = await here.frame(["x" * 100] * 3, policy={"memory_bytes": 10, "row_concurrency": 1})
    await FrameRunner(here.ports, here.options()).run(item)
    assert (await here.last()).meta["rows"] == 1


async def test_deferred_calls_are_saved_once_at_the_end_behind_a_fence() -> None:
    db = FakeSaver()
    here = world(ECHO, SAVE, db=db)
    await FrameRunner(here.ports, here.options()).run(await here.frame(["a", "b"]))
    assert sorted(row["value"] for _, row in db.saved) == ["a", "b"]
    assert db.transactions == 1
    assert db.calls == []
    assert (await here.last()).result == {"retries": 0, "saved": {"save": 2}}
    (fence,) = db.fences
    assert (fence.stage_id, fence.frame_id, fence.task) == (2001, 4001, "save")


async def test_a_row_that_fails_saves_nothing() -> None:
    def answer(config: Any, call: Any) -> Outcome:
        return http_error(404) if config["n"] == "b" else ok()

    db = FakeSaver()
    here = world(SAVE, ECHO, t=FakeTool(answer), db=db)
    await FrameRunner(here.ports, here.options()).run(await here.frame(["a", "b"]))
    assert [row["value"] for _, row in db.saved] == ["a"]


async def test_a_row_that_the_database_refuses_fails_alone_with_all_its_saves() -> None:
    db = FakeSaver()
    other = task("other", "db", {"value": "also {{ item }}"}, deferrable=True)
    here = world(other, SAVE, db=db)
    await FrameRunner(here.ports, here.options()).run(await here.frame(["a", "bad", "c"]))
    saved = sorted(row["value"] for _, row in db.saved)
    assert saved == ["a", "also a", "also c", "c"]
    committed = await here.last()
    assert committed.meta["failed_rows"] == 1
    assert committed.result["errors"][0]["row"] == 1
    assert committed.result["errors"][0]["task"] == "save"
    assert committed.result["saved"] == {"other": 2, "save": 2}


async def test_what_an_attempt_saved_and_did_not_commit_is_adopted() -> None:
    db = FakeSaver()
    here = world(SAVE, ECHO, db=db)
    item = await here.frame(["a", "b"], policy={"row_concurrency": 1})
    await interrupted_before_commit(here, item)
    again = await here.expire(item)
    here.tools["t"].calls.clear()
    await FrameRunner(here.ports, here.options(name="worker-2")).run(again)
    committed = await here.last()
    assert committed.type == "frame.committed"
    assert committed.meta["rows"] == 2
    assert committed.result == {"retries": 0, "saved": {"save": 2}}
    assert None not in await outputs(here)
    assert here.tools["t"].calls == []
    assert len(db.saved) == 2


async def test_a_frame_whose_rows_give_nothing_stores_nothing() -> None:
    here = world(ECHO, SAVE, db=FakeSaver())
    await FrameRunner(here.ports, here.options()).run(await here.frame(["a", "b"]))
    committed = await here.last()
    assert committed.type == "frame.committed"
    assert committed.payload_ref is None
    assert here.payloads.objects == {}


async def test_a_fence_that_can_only_be_found_at_the_save_is_adopted_there() -> None:
    db = FakeSaver()
    late = task("save", "db", {"value": "{{ echo.data.n + 1 }}"}, deferrable=True)
    here = world(ECHO, late, db=db)
    item = await here.frame([1, 2], policy={"row_concurrency": 1})
    await interrupted_before_commit(here, item)
    again = await here.expire(item)
    await FrameRunner(here.ports, here.options(name="worker-2")).run(again)
    assert (await here.last()).meta["rows"] == 2
    assert len(db.saved) == 2


async def test_an_adopted_early_close_is_continued_where_it_ended() -> None:
    db = FakeSaver()
    here = world(ECHO, SAVE, db=db)
    here.tools["t"]._answer = lambda config, call: (here.clock.advance(1.0), ok(1))[1]
    item = await here.frame(["a", "b", "c"], policy={"duration_ms": 1000, "row_concurrency": 1})
    await interrupted_before_commit(here, item)
    again = replace(await here.expire(item), policy={"row_concurrency": 1})
    await FrameRunner(here.ports, here.options(name="worker-2")).run(again)
    committed = await here.last()
    assert committed.context == {"cursor": {"kind": "list", "from": 1, "to": 3}}
    assert committed.meta["continues"] is True
    assert [row["value"] for _, row in db.saved] == ["a"]


async def interrupted_before_commit(here: World, item: Any) -> None:
    """Run an attempt whose process dies between its save and its commit."""
    dying = replace(here, tools={**here.tools, "db": Dying(here.tools["db"])})
    with pytest.raises(KeyboardInterrupt):
        await FrameRunner(dying.ports, dying.options()).run(item)
    assert await here.events("frame.committed") == []


async def test_a_stale_owner_commits_nothing() -> None:
    tool = FakeTool()
    tool.gate = asyncio.Event()
    here = world(ECHO, t=tool)
    item = await here.frame(["a"])
    running = asyncio.ensure_future(FrameRunner(here.ports, here.options()).run(item))
    await until(lambda: tool.calls)
    await here.expire(item)
    tool.gate.set()
    await running
    assert (await here.last()).type == "frame.dispatched"
    assert await here.events("frame.committed") == []


async def test_heartbeats_keep_a_long_frame_and_its_commit_follows_them() -> None:
    tool = FakeTool()
    tool.gate = asyncio.Event()
    here = world(ECHO, t=tool)
    item = await here.frame(["a"])
    runner = FrameRunner(here.ports, here.options(beat_s=0.01))
    running = asyncio.ensure_future(runner.run(item))
    async with asyncio.timeout(30):
        while len(await here.events("frame.heartbeat")) < 2:  # noqa: ASYNC110 - the log tells of no change
            await asyncio.sleep(0.01)
    tool.gate.set()
    await running
    kinds = [e.type for e in await here.events("frame.")]
    assert kinds[-1] == "frame.committed"


async def test_a_heartbeat_that_is_refused_ends_the_work() -> None:
    tool = FakeTool()
    tool.gate = asyncio.Event()
    here = world(ECHO, t=tool)
    item = await here.frame(["a"])
    runner = FrameRunner(here.ports, here.options(beat_s=0.02))
    running = asyncio.ensure_future(runner.run(item))
    await until(lambda: tool.calls)
    await here.expire(item)
    beats = await here.events("frame.heartbeat")
    await asyncio.wait_for(running, 30)
    assert await here.events("frame.heartbeat") == beats
    assert await here.events("frame.committed") == []


async def test_a_frame_that_could_not_be_renewed_is_handed_back_once_the_log_answers() -> None:
    tool = FakeTool()
    tool.gate = asyncio.Event()
    here = world(ECHO, t=tool)
    item = await here.frame(["a"])
    append, is_away, tried = here.log.append, True, []

    async def takes_the_claim_only(batch: Any) -> Any:
        tried.append(batch[0].type)
        if is_away and batch[0].type != "frame.claimed":
            raise Unavailable("the log is down")
        return await append(batch)

    here.log.append = takes_the_claim_only  # type: ignore[method-assign]
    options = here.options(lease_s=1, margin_s=0.95, beat_s=0.01)
    running = asyncio.create_task(FrameRunner(here.ports, options).run(item))
    await asyncio.sleep(0.3)
    assert (await here.last()).type == "frame.claimed"
    assert here.ports.holds.away
    is_away = False
    await asyncio.wait_for(running, 30)
    assert (await here.last()).type == "frame.released", "it costs the frame no attempt"
    assert "frame.failed" not in tried
    assert not here.ports.holds.away


async def test_a_lease_that_ended_while_the_log_was_away_is_left_to_its_new_owner() -> None:
    tool = FakeTool()
    tool.gate = asyncio.Event()
    here = world(ECHO, t=tool)
    item = await here.frame(["a"])
    append, is_away = here.log.append, True

    async def takes_the_claim_only(batch: Any) -> Any:
        if is_away and batch[0].type != "frame.claimed":
            raise Unavailable("the log is down")
        return await append(batch)

    here.log.append = takes_the_claim_only  # type: ignore[method-assign]
    options = here.options(lease_s=1, margin_s=0.95, beat_s=0.01)
    running = asyncio.create_task(FrameRunner(here.ports, options).run(item))
    await asyncio.sleep(0.3)
    is_away = False
    await here.expire(item)
    await asyncio.wait_for(running, 30)
    assert (await here.last()).type == "frame.dispatched"


async def test_a_payload_store_that_is_away_costs_a_frame_no_attempt() -> None:
    here = world(ECHO)
    item = await here.frame(["a"])
    put, failures = here.ports.payloads.put, 5

    async def away(*arguments: Any, **options: Any) -> Any:
        nonlocal failures
        failures -= 1
        here.clock.advance(40)
        if failures:
            raise PayloadUnavailable("the store is paused")
        return await put(*arguments, **options)

    here.ports.payloads.put = away  # type: ignore[method-assign]
    await FrameRunner(here.ports, here.options(beat_s=0.01)).run(item)
    assert (await here.last()).type == "frame.committed"


async def test_an_unexpected_error_fails_the_attempt_with_its_text() -> None:
    def broken(config: Any, call: Any) -> Outcome:
        raise ZeroDivisionError("a bug")

    here = world(ECHO, t=FakeTool(broken))
    await FrameRunner(here.ports, here.options()).run(await here.frame(["a", "b"]))
    failed = await here.last()
    assert (failed.type, failed.status) == ("frame.failed", "error")
    assert failed.error == "ZeroDivisionError: a bug"


async def test_a_cursor_out_of_bounds_fails_the_attempt() -> None:
    here = world(ECHO)
    item = await here.frame(["a"], cursor={"kind": "list", "from": 0, "to": 9})
    await FrameRunner(here.ports, here.options()).run(item)
    assert (await here.last()).error == "rows 0 to 9 of a list of 1: out of bounds"


async def test_a_cancelled_frame_is_handed_back() -> None:
    tool = FakeTool()
    tool.gate = asyncio.Event()
    here = world(ECHO, t=tool)
    item = await here.frame(["a"])
    running = asyncio.ensure_future(FrameRunner(here.ports, here.options()).run(item))
    await until(lambda: tool.calls)
    running.cancel()
    await asyncio.wait({running})
    assert (await here.last()).type == "frame.released"


async def test_a_frame_without_rows_commits_without_output() -> None:
    here = world(ECHO)
    await FrameRunner(here.ports, here.options()).run(await here.frame([]))
    committed = await here.last()
    assert committed.meta["rows"] == 0
    assert committed.payload_ref is None
