"""A long frame stores the rows that are done, so that a later attempt runs only the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.events.model import Event, PayloadRef
from streams.payload.arrow.rows import decode_rows
from streams.worker.attempt.frame import FrameRunner
from streams.worker.port import Config, Outcome
from tests.support.worker.memory import Dying, FakeSaver, FakeTool, World, loop_step, ok, task

ECHO = task("echo", "t", {"n": "{{ item }}", "at": "{{ load.result_index }}"})
SAVE = task("save", "db", {"value": "{{ item }}"}, deferrable=True)
ONE_BY_ONE = {"row_concurrency": 1}


def slow(*tasks: Any, **tools: Any) -> World:
    """Return a world whose rows take nine seconds each: a checkpoint is due after three."""
    here = World(loop_step(*tasks), {"t": FakeTool(), **tools})

    def answer(config: Config, call: object) -> Outcome:
        here.clock.advance(9.0)
        return ok(config["n"])

    here.tools["t"]._answer = answer
    return here


async def rows_of(here: World, event: Event) -> list[Any]:
    assert isinstance(event.payload_ref, PayloadRef)
    return decode_rows(await here.payloads.get(event.payload_ref))


async def test_a_long_frame_checkpoints_its_rows_and_commits_the_rest() -> None:
    here = slow(ECHO)
    item = await here.frame(list("abcde"), policy=ONE_BY_ONE)
    await FrameRunner(here.ports, here.options()).run(item)
    (checkpoint,) = await here.events("frame.heartbeat")
    committed = await here.last()
    assert checkpoint.meta["rows"] == 3
    assert checkpoint.context == {"cursor": {"kind": "list", "from": 3, "to": 5}}
    assert await rows_of(here, checkpoint) == ["a", "b", "c"]
    assert (committed.type, committed.meta["rows"]) == ("frame.committed", 2)
    assert committed.meta["continues"] is False
    assert await rows_of(here, committed) == ["d", "e"]
    assert [config["at"] for config, _ in here.tools["t"].calls] == [0, 1, 2, 3, 4]


async def test_calls_after_a_checkpoint_are_numbered_on() -> None:
    here = slow(ECHO)
    item = await here.frame(list("abcde"), policy=ONE_BY_ONE)
    await FrameRunner(here.ports, here.options()).run(item)
    partitions = [call.partition for _, call in here.tools["t"].calls]
    assert partitions == ["0.1", "1.1", "2.1", "3.1", "4.1"]


async def test_the_frame_s_time_includes_its_checkpoints() -> None:
    here = slow(ECHO)
    policy = {**ONE_BY_ONE, "duration_ms": 40_000}
    await FrameRunner(here.ports, here.options()).run(
        await here.frame(list(range(10)), policy=policy)
    )
    committed = await here.last()
    assert (committed.meta["rows"], committed.meta["continues"]) == (2, True)
    assert committed.context == {"cursor": {"kind": "list", "from": 5, "to": 10}}


async def test_rows_after_a_checkpoint_run_at_once_too() -> None:
    here = slow(ECHO)
    item = await here.frame(list(range(20)), policy={"row_concurrency": 3})
    await FrameRunner(here.ports, here.options()).run(item)
    parts = [*await here.events("frame.heartbeat"), await here.last()]
    assert len(parts) > 3
    assert sum(part.meta["rows"] for part in parts) == 20
    assert [row for part in parts for row in await rows_of(here, part)] == list(range(20))


async def test_a_short_frame_has_no_checkpoint() -> None:
    here = slow(ECHO)
    await FrameRunner(here.ports, here.options()).run(
        await here.frame(["a", "b"], policy=ONE_BY_ONE)
    )
    assert await here.events("frame.heartbeat") == []


async def test_saves_of_a_checkpoint_whose_event_is_missing_are_adopted() -> None:
    database = FakeSaver()
    here = slow(ECHO, SAVE, db=Dying(database))
    item = await here.frame(list("abcde"), policy=ONE_BY_ONE)
    with pytest.raises(KeyboardInterrupt):
        await FrameRunner(here.ports, here.options()).run(item)
    assert [row["value"] for _, row in database.saved] == ["a", "b", "c"]
    here.tools["db"] = database
    again = replace(await here.expire(item), version=4)
    await FrameRunner(here.ports, here.options(name="worker-2")).run(again)
    assert [row["value"] for _, row in database.saved] == list("abcde")
    (checkpoint,) = await here.events("frame.heartbeat")
    assert (checkpoint.meta["rows"], (await here.last()).meta["rows"]) == (3, 2)


async def test_an_attempt_after_a_checkpoint_runs_only_the_rows_after_it() -> None:
    database = FakeSaver()
    here = slow(ECHO, SAVE, db=database)
    cursor = {"kind": "list", "from": 3, "to": 5}
    item = await here.frame(list("abcde"), policy=ONE_BY_ONE, cursor=cursor, rows_before=3)
    await FrameRunner(here.ports, here.options()).run(item)
    assert [config["n"] for config, _ in here.tools["t"].calls] == ["d", "e"]
    assert [fence.partition for fence in database.fences] == ["after/3"]
