"""Values that no event can carry go from step to step all the same, or fail their execution."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from streams.execution.plan import COMPLETED, FAILED, Plan
from streams.results.reading import read_value
from streams.results.spill import merged, oversized
from tests.support.planner.with_worker import Whole, whole
from tests.support.worker.memory import FakeTool, ok

LARGE = "x" * 200_000
NUL = "a\0b"
DEEP: Any = reduce(lambda inner, _: [inner, 1, 2], range(220), [1, 2, 3])

ODD = [pytest.param(LARGE, id="large"), pytest.param(NUL, id="nul"), pytest.param(DEEP, id="deep")]


def book(first: str, then: str = "", returns: str = "{{ use.data }}") -> str:
    return f"""
metadata: {{path: tests/a}}
workflow:
  - step: fetch
    tool: {{kind: http}}
    {first}
{then}
return: "{returns}"
"""


def use(data: str) -> str:
    return f'  - step: use\n    tool: {{kind: noop, data: "{data}"}}'


async def ran(text: str, data: Any) -> tuple[Plan, Whole]:
    async with whole(text, http=FakeTool(lambda *_: ok(data))) as made:
        return await made.result(), made


@pytest.mark.parametrize("value", ODD)
async def test_arguments_of_an_arc_can_be_anything(value: Any) -> None:
    first = 'next: [{step: use, args: {text: "{{ fetch.data }}", n: 1}}]'
    for said in ("args.text", "text"):
        plan, _ = await ran(book(first, use(f"{{{{ [{said} | length, args.n] }}}}")), value)
        assert (plan.status, plan.result["data"]) == (COMPLETED, [len(value), 1])


@pytest.mark.parametrize("value", ODD)
async def test_what_a_step_sets_can_be_anything(value: Any) -> None:
    first = 'set: {text: "{{ fetch.data }}", n: 1}\n    next: use'
    plan, made = await ran(book(first, use("{{ [ctx.text | length, ctx.n] }}")), value)
    assert (plan.status, plan.result["data"]) == (COMPLETED, [len(value), 1])
    (left, *_) = await made.events("step.exit")
    assert left.result["ctx"] == {"n": 1}
    stored = {one.payload_ref.sha256 for one in await made.events("result.stored")}
    assert left.result["ctx_elsewhere"][0]["sha256"] in stored


@pytest.mark.parametrize("value", ODD)
async def test_the_planner_itself_reads_what_it_has_put_elsewhere(value: Any) -> None:
    first = (
        'set: {text: "{{ fetch.data }}"}\n    next: [{step: route, args: {same: "{{ ctx.text }}"}}]'
    )
    then = """  - step: route
    when: "{{ args.same == ctx.text }}"
    next: [{step: use, when: "{{ same | length > 2 }}"}]
""" + use("{{ ctx.text | length }}")
    plan, _ = await ran(book(first, then), value)
    assert (plan.status, plan.result["data"]) == (COMPLETED, len(value))


@pytest.mark.parametrize("name", ["ctx", "args"])
@pytest.mark.parametrize(
    ("called", "found"),
    [
        ("get('text', 'LOST') | length", len(LARGE)),
        ("items() | map('first') | sort", ["n", "text"]),
        ("keys() | sort", ["n", "text"]),
        ("values() | map('string') | map('length') | sort", [1, len(LARGE)]),
    ],
)
async def test_the_methods_of_a_mapping_find_values_that_are_elsewhere(
    name: str, called: str, found: Any
) -> None:
    said = '{text: "{{ fetch.data }}", n: 1}'
    first = f"set: {said}\n    next: [{{step: use, args: {said}}}]"
    plan, _ = await ran(book(first, use(f"{{{{ {name}.{called} }}}}")), LARGE)
    assert (plan.status, plan.result["data"]) == (COMPLETED, found)


async def test_a_value_set_again_is_in_its_new_place_only() -> None:
    first = 'set: {text: "{{ fetch.data }}"}\n    next: small'
    then = "  - step: small\n    set: {text: small}\n    next: use\n" + use("{{ ctx.text }}")
    plan, _ = await ran(book(first, then), LARGE)
    assert (plan.status, plan.result["data"], plan.ctx_elsewhere) == (COMPLETED, "small", [])


@pytest.mark.parametrize("value", ODD)
async def test_a_playbook_returns_anything(value: Any) -> None:
    plan, made = await ran(book("", returns="{{ fetch.data }}"), value)
    assert (plan.status, plan.result) == (COMPLETED, {"status": "success"})
    assert plan.output is not None
    assert await read_value(made.world.payloads, plan.output) == value


@pytest.mark.parametrize("value", ODD)
async def test_a_loop_goes_over_anything(value: Any) -> None:
    then = """  - step: each
    loop: {in: "{{ [fetch.data] }}"}
    tool: {kind: noop, data: "{{ iter.item | length }}"}
    next: use
""" + use("{{ each.data }}")
    plan, _ = await ran(book("next: each", then), value)
    assert (plan.status, plan.result["data"]) == (COMPLETED, [len(value)])


@pytest.mark.parametrize("value", ODD)
async def test_tasks_set_anything_in_a_step_and_in_the_rows_of_a_loop(value: Any) -> None:
    rule = '{else: {do: continue, set_ctx: {text: "{{ outcome.data }}"}}}'
    task = f"[{{a: {{kind: http, eval: [{rule}]}}}}]"
    alone = f"""
metadata: {{path: tests/a}}
workflow:
  - step: fetch
    tool: {task}
    next: use
{use("{{ ctx.text | length }}")}
return: "{{{{ use.data }}}}"
"""
    loop = "loop: {in: [1, 2], spec: {mode: sequential}, frame_policy: {size: 1}}\n    tool:"
    for text in (alone, alone.replace("tool:", loop, 1)):
        tool = FakeTool(lambda *_: ok(value))
        async with whole(text, http=tool) as made:
            plan = await made.result()
            assert (plan.status, plan.result["data"]) == (COMPLETED, len(value)), plan.error
            assert await made.events("frame.failed") == []


async def test_rows_of_a_sequential_loop_see_large_values_of_the_rows_before() -> None:
    text = "{{ ctx.text | default(workload.s) ~ outcome.data }}"
    rule = f'{{else: {{do: continue, set_ctx: {{text: "{text}"}}}}}}'
    text = f"""
metadata: {{path: tests/a}}
workload: {{s: ""}}
workflow:
  - step: fetch
    loop: {{in: [1, 2, 3], spec: {{mode: sequential}}, frame_policy: {{size: 1}}}}
    tool: [{{a: {{kind: http, eval: [{rule}]}}}}]
    next: use
{use("{{ ctx.text | length }}")}
return: "{{{{ use.data }}}}"
"""
    plan, _ = await ran(text, LARGE)
    assert (plan.status, plan.result["data"]) == (COMPLETED, 3 * len(LARGE)), plan.error


async def test_more_names_than_an_event_can_tell_fail_once_and_say_so() -> None:
    many = {f"name-{n:06}": "y" * 100 for n in range(5_000)}
    plan, _ = await ran(book('set: "{{ fetch.data }}"'), many)
    assert plan.status == FAILED
    assert "step fetch" in str(plan.error)
    assert "5000 names, too many" in str(plan.error)
    rule = '{else: {do: continue, set_ctx: "{{ outcome.data }}"}}'
    text = f"""
metadata: {{path: tests/a}}
workflow:
  - step: fetch
    loop: {{in: [1]}}
    tool: [{{a: {{kind: http, eval: [{rule}]}}}}]
"""
    tool = FakeTool(lambda *_: ok(many))
    async with whole(text, http=tool) as made:
        plan = await made.result()
        assert (plan.status, len(tool.calls)) == (FAILED, 1)
        assert "5000 names" in str(plan.error)


async def test_meta_of_a_return_must_be_small_and_the_reason_says_what_to_do() -> None:
    text = book("").replace(
        'return: "{{ use.data }}"',
        'return: {status: success, data: 1, meta: {x: "{{ fetch.data }}"}}',
    )
    for value in (LARGE, NUL):
        plan, _ = await ran(text, value)
        assert plan.status == FAILED
        assert "put it under `data`" in str(plan.error)


@pytest.mark.parametrize(
    ("first", "data", "why"),
    [
        ('set: "{{ fetch.data }}"\n    next: use', {"a\0": 1}, "has the key 'a\\x00'"),
        ('set: "{{ fetch.data }}"\n    next: use', "no mapping", "it must give a mapping"),
        ('next: [{step: use, args: "{{ fetch.data }}"}]', [1], "it must give a mapping"),
    ],
)
async def test_what_no_log_can_take_fails_its_execution_and_never_the_planner(
    first: str, data: Any, why: str
) -> None:
    plan, _ = await ran(book(first, use("1")), data)
    assert plan.status == FAILED
    assert why in str(plan.error)


async def test_a_called_playbook_is_given_a_mapping_and_a_number() -> None:
    child = "\nmetadata: {path: tests/c}\nworkflow: [{step: x, tool: {kind: noop}}]\n"
    for said in ('workload: "{{ fetch.data }}"', 'version: "{{ fetch.data }}"'):
        then = f"  - step: use\n    tool: {{kind: playbook, path: tests/c, {said}}}"
        async with whole(
            book("next: use", then), child, http=FakeTool(lambda *_: ok(["text"]))
        ) as made:
            plan = await made.result()
            assert plan.status == FAILED
            assert "step use" in str(plan.error)


def test_the_largest_values_leave_first_until_the_others_fit() -> None:
    encoded = {"a": b"1" * 50, "b": b"1" * 20, "c": b"1" * 70, "nul": b'"\\u0000"'}
    assert oversized(encoded, 1_000) == ["nul"]
    assert oversized(encoded, 100) == ["nul", "c"]
    assert oversized(encoded, 10) == ["nul", "c", "a", "b"]


def test_a_name_is_in_one_place_only() -> None:
    group = {"names": ["a", "b"], "sha256": "0", "bytes": 1}
    other = {"names": ["c"], "sha256": "1", "bytes": 1}
    assert merged({"c": 1, "d": 2}, [group], {"a": 3}, [other]) == (
        {"d": 2, "a": 3},
        [{**group, "names": ["b"]}, other],
    )


async def test_a_work_item_names_the_results_of_tasks_that_are_elsewhere() -> None:
    text = """
metadata: {path: tests/a}
workflow:
  - step: fetch
    tool: [{page: {kind: http}}, {last: {kind: noop, data: small}}]
    next: use
  - step: use
    tool: {kind: noop, data: "{{ fetch.page | length }}"}
"""
    _, made = await ran(text, LARGE)
    (stored,) = await made.events("result.stored")
    (issued,) = [e for e in await made.events("command.issued") if e.node_name == "use"]
    names = issued.context["document"]["input"]["blobs_refs"]
    assert names == {"fetch.page": stored.result["ref"]}


async def test_an_error_that_is_returned_is_told_however_much_comes_with_it() -> None:
    text = book("").replace(
        'return: "{{ use.data }}"',
        'return: {status: error, error: bad, meta: {x: "{{ fetch.data }}"}}',
    )
    plan, _ = await ran(text, LARGE)
    assert (plan.status, plan.error) == (FAILED, "the playbook returned an error: bad")
