"""The planner takes steps: their arcs, their errors, their children, up to the end."""

from __future__ import annotations

import pytest

from streams.execution.plan import COMPLETED, FAILED, PARTIAL
from streams.playbook.expressions import compile_value
from streams.playbook.model import Arc
from tests.support.planner.memory import World, playbook, step


async def test_one_step_runs_from_its_trigger_to_its_end() -> None:
    world = World(playbook(step("hello")))
    await world.start()
    (item,) = world.take()
    assert (item.kind, item.step, item.tool, item.version) == ("command", "hello", "noop", 1)
    await world.complete(item, {"greeting": "hi"})
    assert await world.types() == [
        "playbook.initialized",
        "workflow.initialized",
        "step.enter",
        "command.issued",
        "command.claimed",
        "command.completed",
        "step.exit",
        "workflow.completed",
        "playbook.completed",
    ]
    plan = await world.plan()
    assert plan.status == COMPLETED
    assert plan.result == {"status": "success", "data": {"greeting": "hi"}, "meta": {}}


async def test_routing_steps_need_no_worker_and_one_append() -> None:
    world = World(playbook(step("start", "middle", tool=None), step("middle", tool=None)))
    await world.start()
    assert (await world.plan()).status == COMPLETED
    assert world.take() == []


async def test_an_arc_is_taken_by_what_the_step_returned() -> None:
    arcs = (
        Arc(step="big", when=compile_value("{{ count.data.n > 10 }}")),
        Arc(step="small", args=compile_value({"n": "{{ count.data.n }}"})),
    )
    world = World(playbook(step("count", *arcs), step("big"), step("small")))
    await world.start()
    await world.complete(world.take()[0], {"n": 3})
    (item,) = world.take()
    assert item.step == "small"
    assert item.document is not None
    assert item.document["input"]["args"] == {"n": 3}


async def test_inclusive_arcs_are_all_taken_and_the_end_waits_for_all() -> None:
    world = World(
        playbook(step("start", "a", "b", tool=None, inclusive=True), step("a"), step("b"))
    )
    await world.start()
    a, b = world.take()
    assert {a.step, b.step} == {"a", "b"}
    await world.complete(a)
    assert not (await world.plan()).has_ended
    await world.complete(b)
    assert (await world.plan()).status == COMPLETED


async def test_a_failed_step_fails_the_execution_and_names_the_step_and_the_error() -> None:
    world = World(playbook(step("load", "next"), step("next")))
    await world.start()
    await world.fail(world.take()[0], "connection refused")
    plan = await world.plan()
    assert plan.status == FAILED
    assert plan.error == "step load: connection refused"
    assert world.take() == []


async def test_an_error_is_handled_by_an_arc_that_asks_about_the_step() -> None:
    handled = Arc(
        step="repair", when=compile_value("{{ load.status == 'error' }}"), handles_error=True
    )
    world = World(playbook(step("load", handled, Arc(step="next")), step("repair"), step("next")))
    await world.start()
    await world.fail(world.take()[0], "no such table")
    (item,) = world.take()
    assert item.step == "repair"
    await world.complete(item)
    assert (await world.plan()).status == COMPLETED


async def test_on_error_continue_ends_partial_and_says_what_went_wrong() -> None:
    world = World(playbook(step("load", "next", on_error="continue"), step("next")))
    await world.start()
    await world.fail(world.take()[0], "no")
    await world.complete(world.take()[0])
    plan = await world.plan()
    assert (plan.status, plan.error) == (PARTIAL, "step load: no")


async def test_set_and_ctx_reach_later_steps() -> None:
    first = step("first", "second", sets=compile_value({"total": "{{ first.data.n * 2 }}"}))
    world = World(playbook(first, step("second", reads=frozenset({"ctx"}))))
    await world.start()
    await world.complete(world.take()[0], {"n": 4}, ctx={"seen": "yes"})
    (item,) = world.take()
    assert item.document is not None
    assert item.document["input"]["ctx"] == {"seen": "yes", "total": 8}


@pytest.mark.parametrize("rounds", [3])
async def test_a_cycle_of_steps_runs_as_often_as_its_condition_holds(rounds: int) -> None:
    back = Arc(step="work", when=compile_value("{{ work.data.n < 3 }}"))
    world = World(playbook(step("work", back)))
    await world.start()
    for n in range(1, rounds + 1):
        await world.complete(world.take()[0], {"n": n})
    assert (await world.plan()).status == COMPLETED
    assert (await world.types()).count("step.enter") == rounds
