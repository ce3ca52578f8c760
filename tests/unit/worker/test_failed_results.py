"""What later steps learn of tasks that failed, whether their step went on or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.worker.port import Outcome
from tests.support.planner.with_worker import whole
from tests.support.worker.memory import FakeTool, http_error, ok

STORED = "{result: {store: {kind: kv, ttl: 1h}}}"
ON = "[{else: {do: continue}}]"


def book(tasks: str, said: str, more: str = "") -> str:
    return f"""
metadata: {{path: tests/a}}
workflow:
  - step: a
    tool:
{tasks}
    {more}
    next: b
  - step: b
    tool: {{kind: noop, data: "{{{{ {said} }}}}"}}
return: "{{{{ b.data }}}}"
"""


def failing(data: Any = None) -> FakeTool:
    return FakeTool(lambda *_: replace(http_error(404), data=data, meta={"n": 1}))


async def run(text: str, **tools: Any) -> tuple[str, Any]:
    async with whole(text, **tools) as made:
        plan = await made.result()
    return plan.status, (plan.result or {}).get("data", plan.error)


LAST = f"      - t: {{kind: http, eval: {ON}}}"
FIRST = f"{LAST}\n      - u: {{kind: noop, data: 1}}"


@pytest.mark.parametrize("tasks", [LAST, FIRST], ids=["last", "first"])
async def test_a_task_that_failed_and_went_on_is_told_as_failed(tasks: str) -> None:
    said = "[a.status, a.t.status, a.t.error.kind, a.t.error.message, a.t.data.why, a.t.meta.n]"
    found = await run(book(tasks, said), http=failing({"why": "gone"}))
    error = ["error", "http.status", "the server said 404", "gone", 1]
    assert found == ("COMPLETED", ["success", *error])


@pytest.mark.parametrize("size", [10, 100_000])
async def test_the_data_of_a_failed_task_lives_as_its_policy_says(size: int) -> None:
    task = f"      - t: {{kind: http, spec: {STORED}, eval: {ON}}}"
    text = book(task, "[a.t.status, a.t.data | length]")
    async with whole(text, http=failing("x" * size)) as made:
        plan = await made.result()
        stored = [one.meta for one in await made.events("result.stored")]
    assert plan.result["data"] == ["error", size], plan.error
    assert all("expires_at" in one for one in stored)
    assert bool(stored) is (size > 10)


async def test_a_step_that_failed_tells_what_its_tasks_left() -> None:
    tasks = f"      - s: {{kind: noop, data: {{x: 7}}, spec: {STORED}}}\n      - t: {{kind: http}}"
    said = "[a.status, a.error.task, a.data.why, a.meta.n, a.s.status, a.s.x, a.t.status]"
    found = await run(
        book(tasks, f"{said} + [a.s._ref is string]", "on_error: continue"),
        http=failing({"why": "gone"}),
    )
    assert found == ("PARTIAL", ["error", "t", "gone", 1, "success", 7, "error", True])


async def test_a_step_whose_sink_failed_has_tasks_that_did_well() -> None:
    tasks = """      - s: {kind: noop, data: {x: 7}}
    sink: {storage: file, data: "{{ data }}", spec: {path: "{{ none_such.x }}"}}"""
    said = "[a.status, a.s.status, a.s.x]"
    status, found = await run(book(tasks, said, "on_error: continue"))
    assert (status, found) == ("PARTIAL", ["error", "success", 7])


async def test_what_cannot_be_told_does_not_hide_why_it_failed() -> None:
    def fails(*_: Any) -> Outcome:
        return replace(http_error(404), data={1, 2})

    text = book("      - t: {kind: http}", "a.error.message", "on_error: continue")
    assert await run(text, http=FakeTool(fails)) == ("PARTIAL", "the server said 404")


async def test_success_whose_retries_ran_out_keeps_its_data() -> None:
    rule = "[{else: {do: retry, attempts: 2, delay: 0}}]"
    text = book(
        f"      - t: {{kind: http, eval: {rule}}}", "[a.status, a.data.k]", "on_error: continue"
    )
    found = await run(text, http=FakeTool(lambda *_: ok({"k": 5})))
    assert found == ("PARTIAL", ["error", 5])
