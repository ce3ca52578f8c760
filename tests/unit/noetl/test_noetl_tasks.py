"""A worker runs the tasks of NoETL's spelling: rules, changes, inputs, plain values."""

from __future__ import annotations

from typing import Any

from streams.clock import SettableClock
from streams.playbook.model import Task
from streams.playbook.parse import parse
from streams.playbook.plain_views import flat_scope, plain_view
from streams.worker.attempt.pipeline import Pipeline
from streams.worker.attempt.row import PipelineRow, RowOutcome
from streams.worker.attempt.task_call import Caller
from tests.support.worker.memory import FakeTool, http_error, ok

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: tests/t}\n"
CALLER = Caller(
    tenant_id="acme", organization_id="care", execution_id=1, step="load", entity_id=7, attempt=1
)


def tasks(step: str) -> tuple[Task, ...]:
    return parse(f"{HEAD}workflow:\n  - step: load\n{step}").steps["load"].tasks


def row(**workload: Any) -> PipelineRow:
    scope = flat_scope(workload=workload, ctx={}, steps={}, execution_id="1")
    return PipelineRow(0, scope)


async def run(step: str, on: PipelineRow | None = None, **tools: Any) -> RowOutcome:
    tools.setdefault("noop", FakeTool(lambda config, call: ok()))
    pipeline = Pipeline(tasks(step), tools, CALLER, clock=SettableClock(), give_up_after_s=1.0)
    return await pipeline.run(on or row())


async def test_input_is_laid_over_and_names_the_tools_other_fields() -> None:
    step = """
    input: {page: "{{ start_page }}"}
    tool:
      - {name: get, kind: http, input: {page: 1, host: h}, url: "{{ host }}/{{ page }}"}
"""
    tool = FakeTool()
    await run(step, row(start_page=4), http=tool)
    assert tool.calls[0][0] == {"url": "h/4", "input": {"page": 4, "host": "h"}}


async def test_a_rule_of_a_single_tool_retries_and_sets() -> None:
    step = """
    tool:
      kind: http
      url: "{{ url }}"
      spec:
        policy:
          rules:
            - when: "{{ output.status == 'error' and output.http.status == 503 }}"
              then: {do: retry, attempts: 3, backoff: fixed, delay: 0}
            - else: {then: {do: continue, set: {ctx.n: "{{ output.data.n }}", iter.m: 2}}}
"""
    tool = FakeTool(lambda config, call: ok({"n": 5}), first=[http_error(503)])
    on = row(url="u")
    ran = await run(step, on, http=tool)
    assert (ran.status, len(tool.calls), on.ctx) == ("success", 2, {"n": 5})
    assert on.scope["n"] == 5
    assert on.scope["iter"] == {"m": 2}


async def test_the_error_of_a_rule_has_the_status_of_its_http_answer() -> None:
    step = """
    tool:
      - name: get
        kind: http
        url: u
        spec:
          policy:
            rules:
              - when: "{{ output.error.status in [500, 503] and not output.error.retryable }}"
                then: {do: continue}
"""
    ran = await run(step, http=FakeTool(lambda config, call: http_error(503)))
    assert ran.status == "success"


async def test_a_condition_that_cannot_be_evaluated_does_not_hold() -> None:
    step = """
    tool:
      - name: get
        kind: noop
        spec: {policy: {rules: [{when: "{{ output.data.n / 0 > 1 }}", then: {do: fail}}]}}
"""
    assert (await run(step)).status == "success"


async def test_else_without_then_has_no_effect() -> None:
    step = """
    tool:
      - {name: get, kind: noop, spec: {policy: {rules: [{else: {do: fail}}]}}}
"""
    assert (await run(step)).status == "success"


async def test_a_tools_own_set_names_the_raw_result_for_later_tasks() -> None:
    step = """
    tool:
      - {name: get, kind: a, set: {fetched: "{{ output }}"}}
      - {name: use, kind: b, input: {x: "{{ fetched.data.n }}", y: "{{ get.data.data.n }}"}}
""".replace("kind: a", "kind: http, url: u").replace("kind: b", "kind: duckdb, query: q")
    use = FakeTool()
    raw = {"status_code": 200, "data": {"n": 3}}
    on = row()
    await run(step, on, http=FakeTool(lambda config, call: ok(raw)), duckdb=use)
    assert use.calls[0][0]["input"] == {"x": 3, "y": None}
    assert on.ctx == {}


async def test_jump_to_the_previous_task_and_break() -> None:
    step = """
    tool:
      - {name: get, kind: http, url: "{{ iter.page | default(1) }}"}
      - name: judge
        kind: noop
        spec:
          policy:
            rules:
              - when: "{{ (iter.page | default(1) | int) < 3 }}"
                then:
                  do: jump
                  to: previous
                  set: {iter.page: "{{ (iter.page | default(1) | int) + 1 }}"}
              - else: {then: {do: break}}
      - {name: never, kind: duckdb, query: q}
"""
    get, never = FakeTool(), FakeTool()
    await run(step, http=get, duckdb=never)
    assert [config["url"] for config, _ in get.calls] == [1, 2, 3]
    assert never.calls == []


async def test_changes_of_one_rule_are_computed_before_any_is_written() -> None:
    step = """
    tool:
      - name: swap
        kind: noop
        spec: {policy: {rules: [{else: {then: {do: continue, set: {a: "{{ b }}", b: "{{ a }}"}}}}]}}
"""
    on = row(a=1, b=2)
    await run(step, on)
    assert on.ctx == {"a": 2, "b": 1}


def test_a_steps_value_is_plain_with_its_tasks_by_label() -> None:
    tasks: dict[str, object] = {"get": {"status": "success", "data": [1]}, "use": None}
    envelope = {"status": "success", "data": {"n": 2, "status": "mine"}, "tasks": tasks}
    view = plain_view(envelope)
    assert isinstance(view, dict)
    assert (view["n"], view["status"], view["get"]) == (2, "mine", [1])
    assert view["results"] == {"get": [1], "use": {"n": 2, "status": "mine"}}
    assert plain_view({"status": "success", "data": [1, 2]}) == [1, 2]


def test_the_reference_of_a_value_exists_only_if_it_was_stored() -> None:
    ref = {"ref": "noetl://x", "store": "kv", "meta": {"bytes": 9}, "preview": "…"}
    small = plain_view({"status": "success", "data": {"n": 1}, "extracted": {"n": 1}})
    large = plain_view({"status": "success", "ref": ref, "extracted": {"n": 1}})
    assert small == {"n": 1}
    assert isinstance(large, dict)
    assert (large["_ref"], large["_store"], large["_size_bytes"], large["n"]) == (
        *("noetl://x", "kv", 9),
        1,
    )


def test_a_loops_value_has_rows_and_stats() -> None:
    counts = {"total": 3, "completed": 2, "failed": 1, "frames": 1}
    of_rows = plain_view({"status": "success", "counts": counts, "data": [1, 2]})
    unread = plain_view({"status": "success", "data": counts, "meta": {"loop_id": "1"}})
    stats = {"total": 3, "success": 2, "failed": 1}
    assert of_rows == {"results": [1, 2], "stats": stats}
    assert unread == {"results": [], "stats": stats}


async def test_code_with_braces_stays_as_it_is_unless_its_names_exist() -> None:
    step = """
    tool:
      kind: python
      code: |
        # {{ unknown }} stays
        result = 1
"""
    tool = FakeTool(lambda config, call: ok(config["code"]))
    ran = await run(step, python=tool)
    assert "{{ unknown }}" in str(ran.data)
    ran = await run(step.replace("unknown", "known"), row(known="x"), python=tool)
    assert "# x stays" in str(ran.data)


async def test_code_that_reads_context_gets_the_names_of_the_execution() -> None:
    step = """
    tool: {kind: python, code: "result = context.get('n')"}
"""
    tool = FakeTool()
    await run(step, row(n=4), python=tool)
    context = tool.calls[0][0]["context"]
    assert isinstance(context, dict)
    assert (context["n"], context["execution_id"]) == (4, "1")
