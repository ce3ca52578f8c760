"""Leases that end early: a worker's new life, and work that is handed back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from streams.clock import SettableClock
from streams.errors import Unavailable
from streams.execution.plan import COMPLETED, FAILED
from streams.kafka.work.item import WorkItem
from streams.log.errors import VersionConflict
from streams.log.worker_incarnations import begin
from tests.support.planner.memory import START, World, loop, playbook, step


def framed() -> World:
    return World(playbook(step("each", loop=loop(list(range(10))))))


async def released(world: World, item: WorkItem, worker: str = "w1") -> None:
    await ended(world, item, "released", {"worker": worker})


async def failed(world: World, item: WorkItem) -> None:
    counts = {"loop_id": str(item.loop_id), "rows": 0, "failed_rows": 0}
    await ended(world, item, "failed", {"worker": "w1", **counts}, status="error", error="no")


async def ended(
    world: World, item: WorkItem, how: str, meta: dict[str, Any], **fields: Any
) -> None:
    """Append the event that ends a claimed attempt."""
    ids = {f"{item.kind}_id": str(item.entity_id)}
    if item.kind == "frame":
        ids["stage_id"] = str(item.stage_id)
    await world.append(
        f"{item.kind}.{how}",
        key=f"{item.entity_id}/{item.attempt}",
        node_name=item.step,
        meta={**ids, "attempt": item.attempt, **meta},
        expected_version=item.version + 1,
        **fields,
    )
    await world.pump()


async def test_a_new_life_of_its_worker_ends_a_lease_at_once_and_says_why() -> None:
    world = framed()
    await begin(world.incarnations, "worker-0/a")
    await world.start()
    (item,) = world.take()
    await world.claim(item, worker="worker-0/a")
    await world.after(1)
    assert "frame.lease_expired" not in await world.types()

    await begin(world.incarnations, "worker-0/b")
    await world.after(1)

    (expired,) = [one for one in await world.events() if one.type == "frame.lease_expired"]
    assert expired.meta["worker"] == "worker-0/a"
    assert expired.meta["reason"] == "restarted"
    (again,) = world.take()
    assert (again.entity_id, again.attempt) == (item.entity_id, 2)
    await world.commit(again)
    assert (await world.plan()).status == COMPLETED


async def test_a_zombie_that_goes_on_is_refused() -> None:
    world = framed()
    await world.start()
    (item,) = world.take()
    await world.claim(item, worker="worker-0/a")
    await begin(world.incarnations, "worker-0/b")
    await world.after(1)
    with pytest.raises(VersionConflict):
        await world.append(
            "frame.heartbeat",
            node_name=item.step,
            meta={
                "frame_id": str(item.entity_id),
                "stage_id": str(item.stage_id),
                "attempt": 1,
                "worker": "worker-0/a",
                "lease_seconds": 60,
            },
            expected_version=item.version + 1,
        )


async def test_a_claim_that_a_zombie_made_after_the_new_life_began_does_not_last() -> None:
    world = framed()
    await begin(world.incarnations, "worker-0/b")
    await world.start()
    (item,) = world.take()
    await world.after(1)
    await world.claim(item, worker="worker-0/a")
    await world.pump()
    assert (await world.types())[-2:] == ["frame.lease_expired", "frame.dispatched"]


async def test_a_life_that_began_since_lives_were_read_is_not_taken_for_an_earlier_one() -> None:
    world = framed()
    await begin(world.incarnations, "worker-0/a")
    await world.start()
    (item,) = world.take()
    await world.after(1)
    await begin(world.incarnations, "worker-0/b")
    await world.claim(item, worker="worker-0/b")
    await world.pump()
    await world.after(1)
    assert "frame.lease_expired" not in await world.types()


async def test_others_and_workers_without_a_life_keep_their_leases() -> None:
    world = World(playbook(step("each", loop=loop(list(range(20))))))
    await world.start()
    ours, theirs = world.take()
    await world.claim(ours, worker="worker-1/x")
    await world.claim(theirs, worker="a-worker-over-http")
    await begin(world.incarnations, "worker-0/b")
    await begin(world.incarnations, "worker-1/x")
    await world.after(30)
    assert "frame.lease_expired" not in await world.types()


async def test_a_command_of_an_earlier_life_is_published_again_even_to_a_new_planner() -> None:
    world = World(playbook(step("hello")))
    await world.start()
    (item,) = world.take()
    await world.claim(item, worker="worker-0/a")
    await begin(world.incarnations, "worker-0/b")

    await world.reborn()

    assert {(one.entity_id, one.attempt) for one in world.take()} == {(item.entity_id, 2)}


async def test_a_command_that_is_handed_back_is_published_again_at_once() -> None:
    world = World(playbook(step("hello")))
    await world.start()
    (item,) = world.take()
    await world.claim(item)
    await released(world, item)
    await world.after(0.5)
    (again,) = world.take()
    assert (again.entity_id, again.attempt, again.version) == (item.entity_id, 2, item.version + 2)
    await world.complete(again)
    assert (await world.plan()).status == COMPLETED


async def test_a_planner_with_a_slow_clock_dispatches_a_released_frame_at_once() -> None:
    world = framed()
    world.planner = world.new_planner(SettableClock(START - timedelta(seconds=1)))
    await world.start()
    (item,) = world.take()
    await world.claim(item)
    await released(world, item)
    (again,) = world.take()
    assert (again.entity_id, again.attempt) == (item.entity_id, 2)


async def test_a_planner_with_a_slow_clock_wakes_for_a_failed_frame() -> None:
    world = framed()
    behind = SettableClock(START - timedelta(seconds=1))
    world.planner = world.new_planner(behind)
    await world.start()
    (item,) = world.take()
    await world.claim(item)
    await failed(world, item)
    behind.advance(1.5)
    await world.after(0)
    assert world.take() == [], "a failed frame waits for a second"
    behind.advance(0.5)
    await world.after(0)
    (again,) = world.take()
    assert (again.entity_id, again.attempt) == (item.entity_id, 2)


async def test_handing_back_is_no_failure_but_falling_silent_is() -> None:
    world = World(playbook(step("hello")), max_attempts=2)
    await world.start()
    for _ in range(4):
        (item,) = world.take()
        await world.claim(item)
        await released(world, item)
        await world.after(0.5)
    for expected in (False, True):
        item = world.take()[-1]
        await world.claim(item)
        await world.pump()
        await world.after(66)
        assert (await world.plan()).has_ended is expected
    plan = await world.plan()
    assert plan.status == FAILED
    assert "fell silent 2 times" in (plan.error or "")


async def test_a_lease_does_not_run_out_while_the_log_is_away() -> None:
    world = framed()
    await world.start()
    (item,) = world.take()
    await world.claim(item)
    await world.after(1)
    current = world.incarnations.current

    async def away() -> dict[str, str]:
        raise Unavailable("Postgres does not answer")

    world.incarnations.current = away  # type: ignore[method-assign]
    for _ in range(10):
        world.clock.advance(60)
        with pytest.raises(Unavailable):
            await world.planner.tick()
    world.incarnations.current = current  # type: ignore[method-assign]

    await world.after(1)
    assert "frame.lease_expired" not in await world.types()
    await world.after(40)
    assert "frame.lease_expired" not in await world.types()
    await world.after(40)
    assert "frame.lease_expired" in await world.types(), "its owner did not come back either"


async def test_a_lease_that_no_tick_saw_run_out_is_not_ended_by_the_batch_after_an_outage() -> None:
    world = framed()
    await world.start()
    (item,) = world.take()
    await world.claim(item)
    await world.after(1)
    current = world.incarnations.current

    async def away() -> dict[str, str]:
        raise Unavailable("Postgres does not answer")

    world.incarnations.current = away  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await world.planner.tick()
    world.clock.advance(600)
    world.incarnations.current = current  # type: ignore[method-assign]
    await world.append(
        "frame.heartbeat",
        node_name=item.step,
        meta={
            "frame_id": str(item.entity_id),
            "stage_id": str(item.stage_id),
            "attempt": 1,
            "worker": "w1",
            "lease_seconds": 1,
        },
        expected_version=item.version + 1,
    )
    world.clock.advance(30)
    await world.pump()
    assert "frame.lease_expired" not in await world.types()
