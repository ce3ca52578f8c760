"""Sinks of loops, of called playbooks and of the playbook itself, with planner and worker."""

from __future__ import annotations

from typing import Any

from streams.worker.port import Call, Config, Outcome
from tests.unit.worker.stage import FakeTool, ok
from tests.whole import whole

LOOP = """metadata: {path: p}
workflow:
  - step: load
    loop: {in: [3, 1, 2], iterator: n}
    tool: {kind: noop, data: "{{ iter.n * 10 }}", sink: {storage: file, data: "{{ result }}"}}
    sink: {storage: file, data: "{{ result }}"}
    next: [{step: end, args: {n: 5}}]
  - step: end
    tool: {kind: noop, data: "{{ n }}"}
sink: {storage: file, data: {last: "{{ result }}", all: "{{ load.data }}"}}
"""


class Store(FakeTool):
    """Keeps what sinks give it, by step."""

    def __init__(self) -> None:
        super().__init__(self.keep)
        self.kept: dict[str, list[Any]] = {}

    def keep(self, config: Config, call: Call) -> Outcome:
        self.kept.setdefault(call.step, []).append(config["data"])
        return ok({"store": "file", "key": call.task, "range": ""})


async def test_rows_all_rows_and_the_whole_are_persisted_in_their_turn() -> None:
    store = Store()
    async with whole(LOOP, sink=store) as made:
        plan = await made.result()
    assert plan.status == "COMPLETED", plan.error
    assert sorted(store.kept["load"]) == [10, 20, 30]
    assert store.kept["load_sink"] == [[30, 10, 20]]
    assert store.kept["playbook_sink"] == [{"last": 5, "all": [30, 10, 20]}]
    assert plan.result["data"] == 5


async def test_the_sink_of_a_call_persists_what_the_child_returned() -> None:
    parent = """metadata: {path: p}
workflow:
  - step: call
    tool: {kind: playbook, path: child}
    sink: {storage: file, data: "{{ result.a }}"}
"""
    child = """metadata: {path: child}
workflow: [{step: one, tool: {kind: noop}}]
return: {status: success, a: 7}
"""
    store = Store()
    async with whole(parent, child, sink=store) as made:
        plan = await made.result()
    assert plan.status == "COMPLETED", plan.error
    assert store.kept == {"call_sink": [7]}


async def test_a_loop_that_failed_is_not_persisted_and_its_error_is_handled() -> None:
    text = """metadata: {path: p}
workflow:
  - step: load
    loop: {in: [1]}
    tool: {kind: bad}
    sink: {storage: file}
    next: [{step: mend, when: "{{ load.status == 'error' }}"}, {step: end}]
  - step: mend
    tool: {kind: noop, data: mended}
  - step: end
"""
    store = Store()
    text = text.replace("kind: bad", "kind: python, code: x")

    def fails(config: Config, call: Call) -> Outcome:
        return Outcome(status="error", error={"kind": "boom", "message": "no"})

    async with whole(text, sink=store, python=FakeTool(fails)) as made:
        plan = await made.result()
    assert store.kept == {}
    assert plan.visits == {"load": 1, "mend": 1}


async def test_a_playbooks_sink_that_fails_fails_the_playbook() -> None:
    text = "metadata: {path: p}\nworkflow: [{step: a}]\nsink: {storage: file, data: 1}\n"

    def fails(config: Config, call: Call) -> Outcome:
        return Outcome(status="error", error={"kind": "file.os", "message": "disk full"})

    async with whole(text, sink=FakeTool(fails)) as made:
        plan = await made.result()
    assert plan.status == "FAILED"
    assert "disk full" in str(plan.error)
