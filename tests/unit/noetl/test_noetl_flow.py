"""The planner follows playbooks in NoETL's spelling: arcs, changes, joins, loops."""

from __future__ import annotations

from typing import Any

from streams.execution.plan import COMPLETED, FAILED
from streams.kafka.work.item import WorkItem
from streams.playbook.parse import parse
from tests.support.planner.memory import World

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: tests/test}\n"


def step(name: str, *arcs: str, more: str = "", mode: str = "exclusive") -> str:
    lead = f", next: {{spec: {{mode: {mode}}}, arcs: [{', '.join(arcs)}]}}" if arcs else ""
    return f"  - {{step: {name}, tool: {{kind: python, code: result = 1}}{more}{lead}}}\n"


def world(*steps: str, workload: str = "{}") -> World:
    return World(parse(f"{HEAD}workload: {workload}\nworkflow:\n{''.join(steps)}"))


def names(items: list[WorkItem]) -> list[str]:
    return sorted(item.step for item in items)


def given(item: WorkItem) -> dict[str, Any]:
    document = item.document
    assert document is not None
    found = document["input"]
    assert isinstance(found, dict)
    return found


async def test_an_arc_reads_the_output_and_sets_variables() -> None:
    arc = "{step: b, when: '{{ output.data.n > 1 }}', set: {ctx.m: '{{ output.data.n + 1 }}'}}"
    run = world(step("a", "{step: c, when: '{{ a.n > 9 }}'}", arc), step("b"), step("c"))
    await run.start()
    await run.complete(run.take()[0], {"n": 2})
    (item,) = run.take()
    assert item.step == "b"
    assert given(item)["ctx"] == {"m": 3}


async def test_set_of_a_step_skips_what_cannot_be_computed() -> None:
    more = ", set: {ctx.good: '{{ output.data.n | int }}', ctx.bad: '{{ output.data.n / 0 }}'}"
    run = world(step("a", "{step: b}", more=more), step("b"))
    await run.start()
    await run.complete(run.take()[0], {"n": "4"})
    assert given(run.take()[0])["ctx"] == {"good": 4}


async def test_no_arc_that_holds_ends_the_execution() -> None:
    run = world(step("a", "{step: b, when: '{{ nothing.here }}'}"), step("b"))
    await run.start()
    await run.complete(run.take()[0], {"n": 2})
    plan = await run.plan()
    assert (plan.status, plan.last_step) == (COMPLETED, "a")


async def test_a_failed_step_ignores_its_arcs_unless_they_name_the_error() -> None:
    run = world(step("a", "{step: b}"), step("b"))
    await run.start()
    await run.fail(run.take()[0], "broken")
    assert (await run.plan()).status == FAILED
    arc = "{step: b, when: \"{{ event.name == 'call.error' }}\"}"
    run = world(step("a", arc), step("b"))
    await run.start()
    await run.fail(run.take()[0], "broken")
    assert names(run.take()) == ["b"]


async def test_a_step_entered_again_replaces_its_value() -> None:
    arcs = ("{step: a, when: '{{ a.n < 2 }}'}", "{step: b}")
    run = world(step("a", *arcs), step("b"))
    await run.start()
    await run.complete(run.take()[0], {"n": 1})
    (again,) = run.take()
    assert again.step == "a"
    await run.complete(again, {"n": 2})
    assert names(run.take()) == ["b"]


async def test_a_join_runs_once_when_all_before_it_have_ended() -> None:
    run = world(
        step("a", "{step: b}", "{step: c}", mode="inclusive"),
        step("b", "{step: end}"),
        step("c", "{step: d}"),
        step("d", "{step: end}"),
        step("end"),
    )
    await run.start()
    await run.complete(run.take()[0])
    first, second = sorted(run.take(), key=lambda item: item.step)
    await run.complete(first)
    assert run.take() == []
    await run.complete(second)
    (item,) = run.take()
    assert item.step == "d"
    await run.complete(item)
    (end,) = run.take()
    assert end.step == "end"
    await run.complete(end)
    assert (await run.plan()).status == COMPLETED
    assert (await run.plan()).visits["end"] == 1


async def test_a_join_is_still_awaited_by_a_planner_that_was_restarted() -> None:
    run = world(
        step("a", "{step: b}", "{step: c}", mode="inclusive"),
        step("b", "{step: end}"),
        step("c", "{step: end}"),
        step("end"),
    )
    await run.start()
    await run.complete(run.take()[0])
    first, second = run.take()
    await run.complete(first)
    await run.reborn()
    await run.complete(second)
    assert names(run.take()).count("end") == 1


async def test_workload_templates_are_rendered_from_other_inputs() -> None:
    load = "{base: http://x, url: '{{ base }}/api', run: '{{ job.uuid }}'}"
    run = world(step("a"), workload=load)
    await run.start({"base": "http://y"})
    seen = given(run.take()[0])["workload"]
    assert seen["url"] == "http://y/api"
    assert seen["run"] == str(run.execution_id)


async def test_concurrent_rows_are_spread_over_frames() -> None:
    more = ", loop: {in: '{{ n }}', iterator: i, spec: {mode: parallel, max_in_flight: '{{ m }}'}}"
    run = world(step("a", more=more), workload="{n: 20, m: 6}")
    await run.start()
    frames = run.take()
    policy = frames[0].policy
    assert policy is not None
    assert len(frames) == policy["window"] == 3
    assert policy["window"] * policy["row_concurrency"] == 6


async def test_rows_of_a_loop_may_be_a_number_text_or_a_mapping() -> None:
    for value, count in (("3", 3), ("'[1, 2]'", 2), ("'a, b,c'", 3), ("{x: 1}", 1), ("[]", None)):
        more = f", loop: {{in: {value}, iterator: i, spec: {{mode: sequential}}}}"
        run = world(step("a", more=more))
        await run.start()
        opened = [e for e in await run.events() if e.type == "stage.opened"]
        assert [e.meta.get("total_rows") for e in opened] == [count or 0]


async def test_a_cursor_ends_with_an_empty_claim_although_rows_failed() -> None:
    loop = (
        ", loop: {cursor: {kind: postgres, auth: pg, claim: SELECT 1}, iterator: r, "
        "spec: {mode: cursor, max_in_flight: 1, frame: {max_rows: 5}}}"
    )
    run = world(step("a", "{step: b}", more=loop), step("b"))
    await run.start()
    (frame,) = run.take()
    await run.commit(frame, rows=3, failed=1, exhausted=False)
    (second,) = run.take()
    await run.commit(second, rows=0, exhausted=True)
    (item,) = run.take()
    assert item.step == "b"
