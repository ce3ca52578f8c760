"""`vars` are a step's values: between its tasks and rows, and in its `set` and arcs."""

from __future__ import annotations

import pytest

from streams.execution.plan import COMPLETED, FAILED
from streams.playbook.parse import check
from streams.playbook.problem import Severity
from tests.support.planner.with_worker import HEAD, whole

ONE = """
metadata: {path: tests/vars}
workflow:
  - step: one
    tool:
      - count: {kind: noop, eval: [{else: {do: continue, set_vars: {n: 41}}}]}
    set: {seen: "{{ vars.n + 1 }}"}
    next:
      - {step: end, when: "{{ vars.n == 41 }}", args: {given: "{{ vars.n }}"}}
  - step: end
    tool: {kind: noop, data: "{{ [ctx.seen, args.given, vars | length] }}"}
"""
ROWS = """
metadata: {path: tests/rows}
workflow:
  - step: each
    loop: {in: [1, 2, 3, 4, 5], iterator: n, spec: {mode: sequential}, frame_policy: {size: 2}}
    tool:
      kind: noop
      eval: [{else: {do: continue, set_vars: {sum: "{{ (vars.sum | default(0)) + n }}"}}}]
    set: {total: "{{ vars.sum }}"}
    next: [{step: end}]
  - step: end
    tool: {kind: noop, data: "{{ ctx.total }}"}
"""


async def test_a_step_s_values_are_known_in_its_set_and_arcs_and_not_later() -> None:
    async with whole(ONE) as here:
        plan = await here.result()
    assert plan.status == COMPLETED, plan.error
    assert plan.result["data"] == [42, 41, 0]
    assert "vars" not in plan.results["one"].to_json()


async def test_rows_of_a_sequential_loop_see_what_earlier_rows_set_in_every_frame() -> None:
    async with whole(ROWS) as here:
        plan = await here.result()
    assert plan.status == COMPLETED, plan.error
    assert plan.result["data"] == 15


async def test_values_too_large_for_an_event_fail_the_step_with_the_way_out() -> None:
    async with whole(ONE.replace("{n: 41}", "{n: \"{{ 'x' * 9000 }}\"}")) as here:
        plan = await here.result()
    assert plan.status == FAILED
    assert "use set_ctx" in (plan.error or "")


@pytest.mark.parametrize(
    "text",
    [
        ONE + 'return: {n: "{{ vars.n }}"}',
        ONE.replace("- step: one", '- step: one\n    when: "{{ vars.n }}"'),
        ROWS.replace("in: [1, 2, 3, 4, 5]", 'in: "{{ vars.items }}"'),
    ],
)
def test_where_no_rule_has_set_any_check_warns(text: str) -> None:
    _, problems = check(HEAD + text)
    found = [one for one in problems if "'vars' is not a known name" in one.message]
    assert [one.severity for one in found] == [Severity.WARNING]
