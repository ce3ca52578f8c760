"""Suspended executions: nothing new is decided, nothing is lost, and who is suspended for what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

import streams.planner.decider
from streams.errors import Unavailable
from streams.events.model import Event, Root
from streams.execution.plan import CANCELLED, COMPLETED, Plan
from streams.execution.suspension import suspended
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.port import Record, TopicPartition
from streams.kafka.work.item import WorkItem
from streams.planner.core import Decision, decide
from streams.planner.draft import Moment
from streams.planner.intake import Intake
from tests.support.events.examples import codec
from tests.support.planner.memory import World, loop, playbook, step


class Killed(BaseException):
    """The process is dead; nobody catches this."""


def fixed() -> World:
    return World(playbook(step("each", loop=loop(list(range(40))))), window=2)


async def test_a_suspended_execution_takes_commits_and_dispatches_nothing_until_resumed() -> None:
    world = fixed()
    await world.start()
    first, second = world.take()
    await world.suspend()
    before = len(await world.events())

    await world.commit(first)
    await world.after(300)

    assert (await world.types())[before:] == ["frame.claimed", "frame.committed"]
    assert world.take() == []

    await world.resume()
    await world.after(1)
    sent = world.take()
    assert second.entity_id in {item.entity_id for item in sent}
    assert first.entity_id not in {item.entity_id for item in sent}
    while sent:
        await world.commit(sent.pop())
        sent += world.take()
    plan = await world.plan()
    assert (plan.status, plan.loops["each"]["done"]) == (COMPLETED, 40)


async def test_a_lease_that_ran_out_while_suspended_is_noticed_after_the_resumption() -> None:
    world = fixed()
    await world.start()
    held, _ = world.take()
    await world.claim(held)
    await world.suspend()
    await world.after(300)
    assert "frame.lease_expired" not in await world.types()

    await world.resume()

    expired = [one for one in await world.events() if one.type == "frame.lease_expired"]
    assert [one.meta["frame_id"] for one in expired] == [str(held.entity_id)]


async def test_a_new_planner_leaves_a_suspended_execution_alone_and_goes_on_when_resumed() -> None:
    world = World(playbook(step("hello")))
    await world.start()
    (item,) = world.take()
    await world.suspend()

    await world.reborn()
    await world.after(300)
    assert (world.planner.plans, world.take()) == ({}, [])

    await world.resume()
    await world.after(1)
    (again,) = world.take()
    assert again == item
    await world.complete(again)
    assert (await world.plan()).status == COMPLETED


async def test_a_suspended_execution_can_be_cancelled_and_stays_so() -> None:
    world = World(playbook(step("hello")))
    await world.start()
    await world.suspend()
    await world.append("execution.cancelled", status="CANCELLED", meta={"by": "ana"})
    await world.pump()
    await world.after(60)
    assert (await world.plan()).status == CANCELLED
    assert (await world.types())[-1] == "execution.cancelled"
    assert world.planner.known == frozenset()


async def test_an_execution_that_kills_the_planner_three_times_is_suspended_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(playbook(step("hello", "bad"), step("bad")))
    await world.start()
    poisoned, deaths = world.execution_id, 0

    def deadly(plan: Plan, moment: Moment) -> Decision:
        if plan.execution_id == poisoned and plan.results:
            raise Killed
        return decide(plan, moment)

    (item,) = world.take()
    with monkeypatch.context() as patch:
        patch.setattr(streams.planner.decider, "decide", deadly)
        try:
            await world.complete(item)
        except Killed:
            deaths += 1
        for _ in range(5):
            try:
                await world.reborn()
            except Killed:
                deaths += 1
        assert deaths == 3
        plan = await world.plan()
        assert plan.is_suspended
        assert plan.suspension == "ended planner-0 3 times: seq 6 (command.completed)"

        world.execution_id = other = poisoned + 1
        await world.start()
        (item,) = world.take()
        await world.complete(item)
        (item,) = world.take()
        await world.complete(item)
        assert (await world.plan()).status == COMPLETED

    world.execution_id = poisoned
    await world.resume()
    (item,) = world.take()
    assert item.step == "bad"
    await world.complete(item)
    assert (await world.plan()).status == COMPLETED
    assert (await world.plan(other)).status == COMPLETED


async def test_one_that_kills_it_again_after_a_resumption_is_suspended_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(playbook(step("hello")))
    await world.start()

    def deadly(plan: Plan, moment: Moment) -> Decision:
        raise Killed

    monkeypatch.setattr(streams.planner.decider, "decide", deadly)
    for times in (1, 2):
        for _ in range(5):
            try:
                await world.reborn()
            except Killed:
                continue
        assert (await world.types()).count("execution.suspended") == times
        try:
            await world.resume()
        except Killed:
            continue


async def test_what_is_down_is_no_executions_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(playbook(step("hello")))
    await world.start()

    async def down(items: Sequence[WorkItem]) -> None:
        raise Unavailable("the broker is down")

    with monkeypatch.context() as patch:
        patch.setattr(world.queue, "publish", down)
        for _ in range(4):
            with pytest.raises(Unavailable):
                await world.reborn()
    await world.reborn()
    await world.complete(world.take()[-1])
    assert (await world.plan()).status == COMPLETED
    assert "execution.suspended" not in await world.types()


async def test_a_record_that_cannot_even_be_read_suspends_its_execution_once() -> None:
    world = World(playbook(step("hello")))
    await world.start()
    for _ in range(2):
        await world.planner.suspend(world.execution_id, "ended it: noetl.events.execution/0@17")
    assert (await world.types()).count("execution.suspended") == 1
    assert world.planner.plans == {}


async def test_the_reason_names_the_place_of_a_record_and_one_without_a_key_suspends_nothing() -> (
    None
):
    world = World(playbook(step("hello")))
    await world.start()
    topics, partition = MemoryTopics(), TopicPartition("noetl.events.execution", 3)

    async def set_aside(record: Record, reason: str) -> None:
        raise AssertionError(reason)

    intake = Intake(
        MemoryFeed(topics, [partition.topic], group="planner"),
        world.planner,
        world.store,
        codec(),
        world.clock,
        partition_of=lambda key: partition,
        set_aside=set_aside,
    )
    for key in (None, b"no id", str(world.execution_id).encode()):
        await intake.suspend(Record(partition, 1234, key, b"", (), 0))
    plan = await world.plan()
    assert plan.suspension == "ended the planner 3 times: noetl.events.execution/3@1234"
    await intake.revoked(frozenset([partition]))
    assert world.planner.known == frozenset()


async def test_a_planner_that_suspends_while_somebody_else_does_is_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = fixed()
    await world.start()
    read, raced = world.store.read_stream, []

    async def racing(root: Root, stream_id: str) -> AsyncIterator[Event]:
        own = [one async for one in read(root, stream_id)]
        if not raced:
            raced.append(True)
            theirs = suspended(own, by="ana", reason="a pause", now=world.clock.now())
            await world.store.append([theirs])
        for one in own:
            yield one

    monkeypatch.setattr(world.store, "read_stream", racing)
    await world.planner.suspend(world.execution_id, "ended planner-0 3 times")
    (event,) = [one for one in await world.events() if one.type == "execution.suspended"]
    assert (raced, event.meta["by"]) == ([True], "ana")
