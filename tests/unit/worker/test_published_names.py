"""The names of an attempt's own results can be used within it, and telling them stays cheap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from streams.log.memory import MemoryEventStore
from streams.payload.port import Scope
from streams.playbook.model import Step
from streams.results.lookup import Results
from streams.worker.attempt.command import CommandRunner
from streams.worker.attempt.frame import FrameRunner
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.artifact import ArtifactTool
from tests.support.planner.with_worker import whole
from tests.support.worker.memory import FakeSaver, FakeTool, World, loop_step, ok, task

SCOPE = Scope("acme", "care")


def stored(store: str) -> Any:
    return task("t", "t", {"x": 1}, spec={"result": {"store": {"kind": store}}})


def world(step: Step, **tools: Any) -> World:
    here = World(step, {"t": FakeTool(), **tools})
    found = ArtifactTool(here.payloads, Results(here.log, here.clock))
    here.tools |= {"artifact": found, "result": found}
    return here


async def ran(*tasks: Any, **tools: Any) -> Any:
    here = world(Step(name="once", tasks=tasks), **tools)
    await CommandRunner(here.ports, here.options()).run(await here.command())
    return await here.last()


@pytest.mark.parametrize("store", ["kv", "object", "s3", "db"])
async def test_the_next_task_gets_what_the_one_before_it_stored(store: str) -> None:
    get = task("g", "artifact", {"action": "get", "ref": "{{ t._ref }}"})
    last = await ran(stored(store), get)
    assert (last.type, last.error) == ("command.completed", None)
    assert last.result["data"] == {"x": 1}


async def test_what_was_put_is_got_by_its_name_at_once() -> None:
    put = task("p", "artifact", {"action": "put", "data": {"x": 2}})
    last = await ran(put, task("g", "result", {"args": {"ref": "{{ p._ref }}"}}))
    assert last.result["data"] == {"x": 2}


@pytest.mark.parametrize("config", [{"action": "list"}, {"args": {"action": "list"}}])
async def test_a_list_has_the_attempts_own_results(config: Any) -> None:
    last = await ran(stored("s3"), task("l", "artifact", config))
    assert [one["store"] for one in last.result["data"]] == ["s3"]


@pytest.mark.parametrize(
    "config",
    [
        {"url": "http://127.0.0.1/?ref={{ t._ref }}"},
        {"url": "http://127.0.0.1/?ref={{ t._ref | urlencode }}"},
        {"args": {"deep": [{"name": "{{ t._ref }}", "n": 2**80}, "\ud800"]}},
        {"deep": [{"name": "{{ t._ref }}"}]},
    ],
)
async def test_whoever_is_handed_a_name_can_resolve_it(config: Any) -> None:
    seen: list[Any] = []

    class Server(FakeTool):
        async def run(self, config: Config, call: Call) -> Outcome:
            seen.extend([e.result["ref"] for e in await here.events("result.stored")])
            return ok()

    here = world(Step(name="once", tasks=(stored("object"), task("h", "h", config))), h=Server())
    await CommandRunner(here.ports, here.options()).run(await here.command())
    (name,) = seen
    assert (await Results(here.log, here.clock).find(name, SCOPE)).ref.uri == name


async def test_a_row_gets_what_it_stored() -> None:
    row = task("t", "t", {"n": "{{ iter.item }}"}, spec={"result": {"store": "s3"}})
    get = task("g", "result", {"action": "get", "ref": "{{ t._ref }}"})
    here = world(loop_step(row, get))
    await FrameRunner(here.ports, here.options()).run(await here.frame([1, 2, 3]))
    last = await here.last()
    assert (last.type, last.meta["failed_rows"]) == ("frame.committed", 0)
    rows = await here.ports.documents.read(last.payload_ref)
    assert rows == [{"n": 1}, {"n": 2}, {"n": 3}]


CALLER = """
metadata: {path: tests/caller}
workflow:
  - step: a
    tool:
      - t: {kind: noop, data: {x: 1}, spec: {result: {store: {kind: object}}}}
      - c: {kind: playbook, path: tests/getter, workload: {ref: "{{ t._ref }}"}}
"""
GETTER = """
metadata: {path: tests/getter}
workload: {ref: x}
workflow:
  - step: g
    tool: {kind: artifact, action: get, ref: "{{ workload.ref }}"}
"""


async def test_a_child_gets_what_its_caller_stored() -> None:
    class LazyTool(FakeTool):
        async def run(self, config: Config, call: Call) -> Outcome:
            results = Results(made.world.store, made.world.clock)
            return await ArtifactTool(made.world.payloads, results).run(config, call)

    async with whole(CALLER, GETTER, artifact=LazyTool()) as made:
        plan = await made.result()
    assert (plan.error, plan.result["data"]) == (None, {"x": 1})


@pytest.mark.parametrize("use", ["nothing", "saved"])
async def test_rows_that_use_no_name_tell_theirs_together(
    use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[int] = []
    append = MemoryEventStore.append

    async def counted(self: Any, events: Sequence[Any]) -> Any:
        count = sum(event.type == "result.stored" for event in events)
        reported.extend([count] if count else [])
        return await append(self, events)

    monkeypatch.setattr(MemoryEventStore, "append", counted)
    row = task("t", "t", {"n": "{{ iter.item }}"}, spec={"result": {"store": "s3"}})
    if use == "saved":  # behind a fence at the frame's end, when its results are reported
        then = task("save", "save", {"name": "{{ t._ref }}"}, deferrable=True)
    else:
        then = task("end", "t", {"n": "{{ execution_id }} {{ iter.item }} 12345678901234567"})
    here = world(loop_step(row, then), save=FakeSaver())
    await FrameRunner(here.ports, here.options()).run(await here.frame(list(range(40))))
    assert (await here.last()).meta["failed_rows"] == 0
    assert reported == [40]
