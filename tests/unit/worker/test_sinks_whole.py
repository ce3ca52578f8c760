"""Sinks of loops, of called playbooks and of the playbook itself, with planner and worker."""

from __future__ import annotations

from typing import Any

import pytest

from streams.worker.port import Call, Config, Outcome
from tests.support.planner.with_worker import whole
from tests.support.worker.memory import FakeTool, ok

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


ENDS = {
    "a loop with a sink of its own": (
        "[{step: a, loop: {in: [1, 2], iterator: n}, tool: {kind: noop, data: '{{ iter.n }}'},"
        " sink: {storage: file}}]",
        [1, 2],
    ),
    "a step whose next is skipped": (
        "[{step: a, tool: {kind: noop, data: 7}, next: b},"
        " {step: b, when: '{{ 1 > 2 }}', tool: {kind: noop, data: 8}}]",
        7,
    ),
}


@pytest.mark.parametrize("end", ENDS)
async def test_the_playbooks_sink_persists_what_the_last_step_that_ran_gave(end: str) -> None:
    workflow, expected = ENDS[end]
    sink = "sink: {storage: file, data: '{{ result }}'}"
    store = Store()
    async with whole(f"metadata: {{path: p}}\nworkflow: {workflow}\n{sink}\n", sink=store) as made:
        plan = await made.result()
    assert (plan.status, plan.result["data"]) == ("COMPLETED", expected)
    assert store.kept["playbook_sink"] == [expected]


async def test_a_sink_behind_the_last_call_does_not_change_what_the_playbook_gives() -> None:
    parent = (
        "metadata: {path: p}\nworkflow: [{step: call, tool: {kind: playbook, path: child}, %s}]\n"
    )
    child = "metadata: {path: child}\nworkflow: [{step: one}]\nreturn: 3\n"
    for sink in ("on_error: fail", "sink: {storage: file}"):
        async with whole(parent % sink, child, sink=Store()) as made:
            plan = await made.result()
        assert (plan.status, plan.result["data"]) == ("COMPLETED", 3)


async def test_what_a_playbook_returns_is_unwrapped_for_its_sink() -> None:
    text = """metadata: {path: p}
workflow: [{step: a}]
return: {status: success, data: {x: 5}}
sink: {storage: file, data: ["{{ result.x }}", "{{ this.status }}"]}
"""
    store = Store()
    async with whole(text, sink=store) as made:
        plan = await made.result()
    assert store.kept == {"playbook_sink": [[5, "success"]]}
    assert plan.result["data"] == {"x": 5}


async def test_a_playbook_that_returns_an_error_is_not_persisted() -> None:
    text = """metadata: {path: p}
workflow: [{step: a}]
return: {status: error, data: 5, error: bad}
sink: {storage: file}
"""
    store = Store()
    async with whole(text, sink=store) as made:
        plan = await made.result()
    assert (plan.status, store.kept) == ("FAILED", {})


async def test_a_loops_arc_for_errors_is_taken_where_its_sink_fails() -> None:
    text = """metadata: {path: p}
workflow:
  - step: load
    loop: {in: [1]}
    tool: {kind: noop}
    sink: {storage: file}
    next: [{step: mend, when: "{{ load.status == 'error' }}"}, {step: end}]
  - step: mend
    tool: {kind: noop, data: "{{ load_sink.status }}"}
  - step: end
"""

    def fails(config: Config, call: Call) -> Outcome:
        return Outcome(status="error", error={"kind": "file.os", "message": "disk full"})

    async with whole(text, sink=FakeTool(fails)) as made:
        plan = await made.result()
    assert plan.visits == {"load": 1, "load_sink": 1, "mend": 1}
    assert plan.result["data"] == "error"
