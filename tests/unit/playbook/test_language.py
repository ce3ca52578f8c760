"""Each feature of the language in a playbook of its own: checked, planned and run."""

from __future__ import annotations

from typing import Any

import pytest

from streams.execution.plan import COMPLETED, FAILED, Plan
from streams.playbook.parse import check
from streams.playbook.problem import Severity
from tests.support.planner.with_worker import HEAD, whole
from tests.support.worker.memory import FakeTool, http_error, ok

TOP = "metadata: {path: tests/language}\n"


async def run(text: str, workload: Any = None, **tools: Any) -> Plan:
    """Check a playbook, run it, and return how it ended."""
    _, problems = check(HEAD + TOP + text)
    assert [one for one in problems if one.severity is not Severity.NOTE] == []
    async with whole(TOP + text, workload=workload, **tools) as made:
        return await made.result()


async def returned(text: str, workload: Any = None, **tools: Any) -> Any:
    plan = await run(text, workload, **tools)
    assert (plan.status, plan.error) == (COMPLETED, None)
    return plan.result["data"]


@pytest.mark.parametrize(("go", "expected"), [(True, [1, "success"]), (False, [None, "skipped"])])
async def test_when_lets_a_step_run_or_passes_it_over(go: bool, expected: Any) -> None:
    text = """
workload: {go: true}
workflow:
  - step: a
    when: "{{ workload.go }}"
    tool: {kind: noop, data: 1}
    next: b
  - step: b
    tool: {kind: noop, data: "{{ a.status }}"}
return: ["{{ a.data }}", "{{ b.data }}"]
"""
    assert await returned(text, {"go": go}) == expected


async def test_when_reads_the_arguments_of_its_arc_and_guards_loops() -> None:
    text = """
workflow:
  - step: start
    next: [{step: a, args: {go: false}}]
  - step: a
    when: "{{ args.go }}"
    loop: {in: [1, 2], iterator: x}
    tool: {kind: noop}
    next: [{step: b, when: "{{ a.status == 'skipped' }}"}]
  - step: b
    tool: {kind: noop, data: passed over}
return: "{{ b.data }}"
"""
    assert await returned(text) == "passed over"


async def test_workbook_actions_are_used_by_steps_and_tasks_and_their_keys_can_be_changed() -> None:
    text = """
workbook:
  - name: say
    tool: {kind: noop, data: {said: "{{ args.word }}"}}
  - name: row
    tool: {kind: noop, data: {x: "{{ iter.x }}"}}
workflow:
  - step: start
    next: [{step: plain, args: {word: hi}}]
  - step: plain
    tool: {action: say}
    next: changed
  - step: changed
    tool: {kind: workbook, name: say, data: {said: other}}
    next: rows
  - step: rows
    loop: {in: [1, 2], iterator: x}
    tool:
      - one: {action: row}
      - two: {kind: noop, data: "{{ one.x * 10 }}"}
return: ["{{ plain.said }}", "{{ changed.said }}", "{{ rows.data }}"]
"""
    assert await returned(text) == ["hi", "other", [10, 20]]


WAYS = """
workload: {n: 5}
workflow:
  - step: start
    tool: {kind: noop, data: {n: "{{ workload.n }}"}}
    next:
      spec: {mode: %s}
      arcs:
        - {step: big, when: "{{ start.n > 3 }}", args: {n: "{{ start.n }}"}}
        - {step: huge, when: "{{ start.n > 300 }}"}
        - {step: any, args: {n: 0}}
  - step: big
    tool: {kind: noop, data: "{{ args.n }} {{ n }}"}
  - step: huge
    tool: {kind: noop}
  - step: any
    tool: {kind: noop, data: "{{ args.n }}"}
return:
  big: "{{ big.data | default('not taken') }}"
  huge: "{{ huge.data | default('not taken') }}"
  any: "{{ any.data | default('not taken') }}"
"""


@pytest.mark.parametrize(
    ("mode", "n", "expected"),
    [
        ("exclusive", 5, {"big": "5 5", "huge": "not taken", "any": "not taken"}),
        ("exclusive", 1, {"big": "not taken", "huge": "not taken", "any": 0}),
        ("inclusive", 5, {"big": "5 5", "huge": "not taken", "any": 0}),
    ],
)
async def test_arcs_are_taken_with_their_arguments(mode: str, n: int, expected: Any) -> None:
    assert await returned(WAYS % mode, {"n": n}) == expected


async def test_set_changes_ctx_before_the_arcs_are_judged() -> None:
    text = """
workflow:
  - step: a
    tool: {kind: noop, data: {n: 2}}
    set: {n: "{{ a.n }}", was: "{{ ctx.n | default(0) }}"}
    next: [{step: b, when: "{{ ctx.n == 2 }}"}]
  - step: b
    set: {next: "{{ ctx.n + 1 }}"}
return: "{{ ctx }}"
"""
    assert await returned(text) == {"n": 2, "was": 0, "next": 3}


async def test_retry_does_the_task_again_with_backoff() -> None:
    text = """
workflow:
  - step: a
    tool:
      - fetch:
          kind: http
          eval:
            - expr: "{{ outcome.status == 'error' and outcome.http.status == 503 }}"
              do: retry
              attempts: 3
              backoff: exponential
              delay: 0.001
            - else: {do: continue, set_ctx: {tries: "{{ outcome.attempt }}"}}
return: ["{{ ctx.tries }}", "{{ a.data }}"]
"""
    busy = http_error(503)
    assert await returned(text, http=FakeTool(first=[busy, busy, ok("x")])) == [3, "x"]
    plan = await run(text, http=FakeTool(first=[busy] * 3))
    assert plan.status == FAILED
    assert "after 3 tries" in (plan.error or "")


async def test_jump_repeats_tasks_and_break_ends_them_with_values_of_the_row_and_the_step() -> None:
    text = """
workflow:
  - step: a
    loop: {in: [10, 20], iterator: x, spec: {mode: sequential}}
    tool:
      - init:
          kind: noop
          eval: [{else: {do: continue, set_iter: {page: 1}, set_vars: {sum: 0}}}]
      - fetch:
          kind: noop
          data: "{{ iter.x + iter.page }}"
          eval: [{else: {set_vars: {sum: "{{ vars.sum + outcome.data }}"}}}]
      - more:
          kind: noop
          data: "{{ vars.sum }}"
          eval:
            - expr: "{{ iter.page < 3 }}"
              do: jump
              to: fetch
              set_iter: {page: "{{ iter.page + 1 }}"}
            - else: {do: break}
      - never: {kind: noop, data: never}
return: "{{ a.data }}"
"""
    assert await returned(text) == [36, 66]


async def test_fail_fails_a_task_that_went_well_and_an_arc_can_handle_it() -> None:
    text = """
workflow:
  - step: a
    tool:
      - look: {kind: noop, data: 7, eval: [{expr: "{{ outcome.data > 5 }}", do: fail}]}
    next: [{step: repair, when: "{{ a.status == 'error' }}"}]
  - step: repair
    tool: {kind: noop, data: "{{ a.error.kind }}"}
return: "{{ repair.data }}"
"""
    assert await returned(text) == "fail"


async def test_continue_goes_on_after_an_error() -> None:
    text = """
workflow:
  - step: a
    tool:
      - fetch: {kind: http, eval: [{expr: "{{ outcome.status == 'error' }}", do: continue}]}
      - tell: {kind: noop, data: "{{ fetch.status }} {{ fetch.error.kind }} {{ _prev.status }}"}
return: "{{ a.data }}"
"""
    assert await returned(text, http=FakeTool(first=[http_error(500)])) == "error http.status error"


async def test_changes_of_iter_vars_and_ctx_are_seen_by_later_tasks_and_ctx_by_later_steps() -> (
    None
):
    text = """
workflow:
  - step: a
    tool:
      - one: {kind: noop, eval: [{else: {set_vars: {x: 1}, set_iter: {y: 2}, set_ctx: {z: 3}}}]}
      - two: {kind: noop, data: ["{{ vars.x }}", "{{ iter.y }}", "{{ ctx.z }}"]}
    next: b
  - step: b
    tool:
      kind: noop
      data: ["{{ vars.x | default('-') }}", "{{ iter.y | default('-') }}", "{{ ctx.z }}"]
return: "{{ a.data + b.data }}"
"""
    assert await returned(text) == [1, 2, 3, "-", "-", 3]


async def test_a_row_knows_itself_and_its_number_over_all_frames() -> None:
    text = """
workflow:
  - step: a
    loop:
      in: [{v: 1}, {v: 2}, {v: 3}]
      iterator: x
      spec: {mode: parallel}
      frame_policy: {size: 2}
    tool:
      kind: noop
      data: ["{{ _loop.current_item.v }}", "{{ a.result_index }}", "{{ x.v }}", "{{ iter.x.v }}"]
return: "{{ a.data }}"
"""
    assert await returned(text) == [[1, 0, 1, 1], [2, 1, 2, 2], [3, 2, 3, 3]]


async def test_rows_that_follow_one_another_see_what_those_before_changed_of_ctx() -> None:
    text = """
workflow:
  - step: a
    loop:
      in: [1, 2, 3, 4, 5, 6]
      iterator: x
      spec: {mode: sequential}
      frame_policy: {size: 2}
    tool:
      kind: noop
      data: "{{ ctx.sum | default(0) }}"
      eval: [{else: {do: continue, set_ctx: {sum: "{{ (ctx.sum | default(0)) + iter.x }}"}}}]
return: ["{{ a.data }}", "{{ ctx.sum }}"]
"""
    assert await returned(text) == [[0, 1, 3, 6, 10, 15], 21]


STEP = """
workflow:
  - step: a
    tool: {kind: noop, data: {n: 5}}
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("5", {"status": "success", "data": 5}),
        ('{n: "{{ a.n }}"}', {"status": "success", "data": {"n": 5}}),
        ('{status: success, data: "{{ a.n }}"}', {"status": "success", "data": 5}),
        (
            '{status: success, data: "{{ a.n }}", meta: {by: me}}',
            {"status": "success", "data": 5, "meta": {"by": "me"}},
        ),
        ('"{{ a }}"', {"status": "success", "data": {"n": 5}, "meta": {}}),
        ("{status: success, n: 6}", {"status": "success", "data": {"status": "success", "n": 6}}),
    ],
)
async def test_return_gives_an_envelope_or_what_is_put_into_one(given: str, expected: Any) -> None:
    plan = await run(f"{STEP}return: {given}\n")
    assert (plan.status, plan.result) == (COMPLETED, expected)


async def test_without_return_the_last_step_gives_the_result() -> None:
    assert await returned(STEP) == {"n": 5}


async def test_a_playbook_that_returns_an_error_has_failed() -> None:
    text = f'{STEP}return: {{status: error, data: "{{{{ a.n }}}}", error: no charts}}\n'
    plan = await run(text)
    assert plan.status == FAILED
    assert plan.error == "the playbook returned an error: no charts"
    assert plan.result["data"] == 5
