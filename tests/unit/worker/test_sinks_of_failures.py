"""Sinks of loops, calls and playbooks with `on: error` and `on: always`, where these fail."""

from __future__ import annotations

from typing import Any

import pytest

from streams.worker.port import Call, Config, Outcome
from tests.support.planner.with_worker import whole
from tests.support.worker.memory import FakeTool, ok

LOOP = """metadata: {path: p}
workflow:
  - step: load
    loop: {in: [1, 2, 3], iterator: n}
    tool: {kind: python, code: x, args: {n: "{{ iter.n }}"}}
    sink: {storage: file, on: ON, data: ["{{ this.status }}", "{{ this.error.message }}"]}
    next: NEXT
  - step: mend
    tool: {kind: noop, data: "{{ load_sink.status }}"}
  - step: end
    tool: {kind: noop, data: "{{ load_sink.status }}"}
"""
BOTH = "[{step: mend, when: \"{{ load.status == 'error' }}\"}, {step: end}]"


class Store(FakeTool):
    """Stores what sinks write, by step."""

    def __init__(self, error: str | None = None) -> None:
        super().__init__(self.put)
        self.error, self.stored = error, dict[str, list[Any]]()

    def put(self, config: Config, call: Call) -> Outcome:
        if self.error is not None:
            return Outcome(status="error", error={"kind": "file.os", "message": self.error})
        self.stored.setdefault(call.step, []).append(config["data"])
        return ok({"store": "file", "key": call.task, "range": ""})


def breaks(*numbers: int) -> FakeTool:
    """Return a tool that fails for these rows."""

    def run(config: Config, call: Call) -> Outcome:
        if (config.get("args") or {}).get("n", 0) in numbers:
            return Outcome(status="error", error={"kind": "boom", "message": "broken"})
        return ok(1)

    return FakeTool(run)


@pytest.mark.parametrize("on", ["error", "always"])
async def test_a_failed_loop_is_persisted_and_the_execution_fails_by_the_loop(on: str) -> None:
    store = Store()
    text = LOOP.replace("ON", on).replace("NEXT", "[{step: mend, when: '{{ 1 > 2 }}'}, end]")
    async with whole(text, sink=store, python=breaks(2)) as made:
        plan = await made.result()
        (failed,) = await made.events("playbook.failed")
    assert (plan.status, plan.visits) == ("FAILED", {"load": 1, "load_sink": 1})
    ((status, message),) = store.stored["load_sink"]
    assert status == "error"
    assert "broken" in message
    assert failed.meta["failed_step"] == "load"
    assert failed.meta["failed_rows"] == 1


@pytest.mark.parametrize(("on", "stored"), [("error", []), ("always", ["success"])])
async def test_a_loop_that_succeeds_is_persisted_if_always(on: str, stored: list[str]) -> None:
    store = Store()
    text = LOOP.replace("ON", on).replace("NEXT", BOTH).replace(', "{{ this.error.message }}"', "")
    async with whole(text, sink=store, python=breaks()) as made:
        plan = await made.result()
    assert (plan.status, plan.visits) == ("COMPLETED", {"load": 1, "load_sink": 1, "end": 1})
    assert [one for (one,) in store.stored.get("load_sink", [])] == stored


@pytest.mark.parametrize("on", ["error", "always"])
async def test_an_error_that_an_arc_handles_is_persisted_first(on: str) -> None:
    store = Store()
    text = LOOP.replace("ON", on).replace("NEXT", BOTH)
    async with whole(text, sink=store, python=breaks(2)) as made:
        plan = await made.result()
    assert plan.visits == {"load": 1, "load_sink": 1, "mend": 1}
    assert (plan.status, plan.result["data"]) == ("COMPLETED", "success")
    assert len(store.stored["load_sink"]) == 1


async def test_an_execution_that_fails_names_its_step_and_the_sink_that_failed_too() -> None:
    text = LOOP.replace("ON", "error").replace("NEXT", "[{step: mend, when: '{{ 1 > 2 }}'}, end]")
    async with whole(text, sink=Store("disk full"), python=breaks(1, 2, 3)) as made:
        plan = await made.result()
        (failed,) = await made.events("playbook.failed")
    assert failed.meta["failed_step"] == "load"
    assert "broken" in str(plan.error)
    assert "load_sink failed: " in str(plan.error)
    assert "disk full" in str(plan.error)


async def test_a_failed_call_is_persisted() -> None:
    parent = """metadata: {path: p}
workflow:
  - step: call
    tool: {kind: playbook, path: child}
    sink: {storage: file, on: error, data: "{{ this.status }}"}
"""
    child = "metadata: {path: child}\nworkflow: [{step: one, tool: {kind: python, code: x}}]\n"
    store = Store()
    async with whole(parent, child, sink=store, python=breaks(0)) as made:
        plan = await made.result()
    assert (plan.status, store.stored) == ("FAILED", {"call_sink": ["error"]})


PLAYBOOK = """metadata: {path: p}
workflow: [{step: one, tool: {kind: python, code: x}}]
sink:
  storage: file
  on: ON
  data: ["{{ this.status }}", "{{ this.error.step }}", "{{ this.error.message }}"]
"""


@pytest.mark.parametrize("on", ["error", "always"])
async def test_a_failed_playbook_is_persisted_by_its_own_sink(on: str) -> None:
    store = Store()
    async with whole(PLAYBOOK.replace("ON", on), sink=store, python=breaks(0)) as made:
        plan = await made.result()
        (failed,) = await made.events("playbook.failed")
    assert (plan.status, failed.meta["failed_step"]) == ("FAILED", "one")
    ((status, step, message),) = store.stored["playbook_sink"]
    assert (status, step) == ("error", "one")
    assert "broken" in message


async def test_a_playbooks_sink_for_success_does_not_run_after_a_failure() -> None:
    store = Store()
    text = PLAYBOOK.replace("ON", "success")
    async with whole(text, sink=store, python=breaks(0)) as made:
        plan = await made.result()
    assert (plan.status, store.stored) == ("FAILED", {})


async def test_the_sinks_of_a_loop_and_of_its_playbook_both_persist_a_failure() -> None:
    store = Store()
    text = LOOP.replace("ON", "error").replace("NEXT", "[{step: mend, when: '{{ 1 > 2 }}'}, end]")
    text += "sink: {storage: file, on: always, data: '{{ this.error.failed_rows }}'}\n"
    async with whole(text, sink=store, python=breaks(2)) as made:
        plan = await made.result()
    assert plan.status == "FAILED"
    assert len(store.stored["load_sink"]) == 1
    assert store.stored["playbook_sink"] == [1]


RETURNS = {
    "an error": ("{status: error, data: 5, error: bad}", "bad"),
    "nothing that can be rendered": ("'{{ nowhere.data }}'", "nowhere"),
}


@pytest.mark.parametrize("returned", RETURNS)
@pytest.mark.parametrize("error", [None, "disk full"])
async def test_what_a_playbook_returns_instead_of_a_result_is_persisted(
    returned: str, error: str | None
) -> None:
    value, reason = RETURNS[returned]
    text = (
        f"metadata: {{path: p}}\nworkflow: [{{step: a}}]\nreturn: {value}\n"
        "sink: {storage: file, on: error, data: '{{ this.error }}'}\n"
    )
    store = Store(error)
    async with whole(text, sink=store) as made:
        plan = await made.result()
    assert plan.status == "FAILED"
    assert reason in str(plan.error)
    assert (error or "") in str(plan.error)
    if error is None:
        (stored,) = store.stored["playbook_sink"]
        assert reason in str(stored)
