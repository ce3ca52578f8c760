"""The planner and other executions: children, whoever waits for the outcome, cancelling."""

from __future__ import annotations

from dataclasses import replace

from streams.execution.plan import COMPLETED, FAILED
from streams.playbook.expressions import compile_value
from streams.playbook.model import Step, Task
from tests.support.planner.memory import World, playbook, step


async def test_a_child_playbook_returns_its_result_to_the_parent() -> None:
    world = World(playbook(step("call", tool="playbook")))
    child = playbook(step("inner"), returns=compile_value({"sum": "{{ inner.data.n + 1 }}"}))
    world.playbooks.all[8] = type(child)(
        name="child", path="tests/child", steps=child.steps, first="inner", returns=child.returns
    )
    parent = world.playbooks.all[7].steps["call"]
    task = parent.tasks[0]
    call = type(task)(
        label="call",
        kind="playbook",
        config=compile_value({"path": "tests/child", "args": {"a": 1}}),
    )
    world.playbooks.all[7] = playbook(type(parent)(name="call", tasks=(call,)))
    await world.start()
    (item,) = world.take()
    assert item.step == "inner"
    parent_id, world.execution_id = world.execution_id, item.execution_id
    await world.complete(item, {"n": 41})
    world.execution_id = parent_id
    plan = await world.plan()
    assert plan.status == COMPLETED
    assert plan.result["data"] == {"sum": 42}


async def test_an_unknown_child_fails_its_step() -> None:
    task = step("call", tool="playbook")
    world = World(playbook(task))
    await world.start()
    assert (await world.plan()).status == FAILED


async def test_the_outcome_is_sent_to_whoever_asked_once() -> None:
    world = World(playbook(step("hello")))
    await world.start(reply_to="answers")
    await world.complete(world.take()[0], 5)
    ((topic, execution_id, body),) = world.replies.sent
    assert (topic, execution_id, body["status"]) == ("answers", world.execution_id, COMPLETED)
    assert (await world.types())[-1] == "reply.sent"


async def test_a_cancelled_execution_stays_cancelled() -> None:
    world = World(playbook(step("hello")))
    await world.start()
    world.take()
    await world.append("execution.cancelled", status="CANCELLED", meta={"by": "someone"})
    await world.pump()
    assert (await world.plan()).status == "CANCELLED"
    assert world.execution_id not in world.planner.plans


async def test_an_execution_that_is_cancelled_takes_its_children_along() -> None:
    call = Task(label="call", kind="playbook", config=compile_value({"path": "tests/child"}))
    world = World(playbook(replace(step("call"), tasks=(call,))))
    world.playbooks.all[8] = replace(playbook(step("inner")), path="tests/child")
    await world.start()
    (item,) = world.take()
    await world.append("execution.cancelled", status="CANCELLED", meta={"by": "someone"})
    await world.pump()
    child = await world.plan(item.execution_id)
    assert child.status == "CANCELLED"
    assert str(world.execution_id) in (child.error or "")
    assert not world.planner.plans


async def test_a_child_that_ended_stays_as_it_is() -> None:
    call = Task(label="call", kind="playbook", config=compile_value({"path": "tests/child"}))
    fails = Step(name="after", when=compile_value("{{ call.nothing.there }}"))
    calls = replace(step("call", "after"), tasks=(call,))
    world = World(playbook(calls, fails))
    world.playbooks.all[8] = replace(playbook(step("inner")), path="tests/child")
    await world.start()
    parent_id = world.execution_id
    (item,) = world.take()
    world.execution_id = item.execution_id
    await world.complete(item, 1)
    assert (await world.plan(parent_id)).status == FAILED
    assert (await world.plan(item.execution_id)).status == COMPLETED
