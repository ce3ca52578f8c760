from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streams.errors import Unavailable
from streams.worker.attempt.lease import AttemptLease, LeaseLost
from tests.support.worker.memory import World, loop_step, task, turns


def world() -> World:
    return World(loop_step(task("a", "noop")), {})


def fail_once(here: World, *, after: bool) -> None:
    """Let the log's next answer be lost, before or after it has taken the event."""
    append = here.log.append

    async def faulty(batch: Any) -> Any:
        here.log.append = append  # type: ignore[method-assign]
        if after:
            await append(batch)
        raise Unavailable("no answer")

    here.log.append = faulty  # type: ignore[method-assign]


@pytest.mark.parametrize("after", [False, True])
async def test_a_claim_whose_answer_was_lost_is_still_ours(after: bool) -> None:
    here = world()
    lease = AttemptLease(await here.frame([]), here.ports, here.options())
    fail_once(here, after=after)
    assert await lease.claim()
    assert lease.version == 2
    assert len(await here.events("frame.claimed")) == 1


async def test_an_item_that_this_life_has_had_before_is_not_claimed_again() -> None:
    here = world()
    item = await here.frame([])
    assert await AttemptLease(item, here.ports, here.options()).claim()
    assert not await AttemptLease(item, here.ports, here.options()).claim()


@pytest.mark.parametrize("after", [False, True])
async def test_an_end_whose_answer_was_lost_is_said_once(after: bool) -> None:
    here = world()
    lease = AttemptLease(await here.frame([]), here.ports, here.options())
    assert await lease.claim()
    async with lease:
        fail_once(here, after=after)
        await lease.end(lease.attempt.released())
    assert len(await here.events("frame.released")) == 1


async def test_a_heartbeat_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.worker.attempt.lease._RETRY_S", 0.01)
    here = world()
    lease = AttemptLease(await here.frame([]), here.ports, here.options(beat_s=0.01))
    assert await lease.claim()
    fail_once(here, after=False)
    async with lease, asyncio.timeout(30):
        while not await here.events("frame.heartbeat"):  # noqa: ASYNC110 - the log makes no sound
            await asyncio.sleep(0.002)
        await lease.end(lease.attempt.released())


async def test_an_attempt_that_hangs_is_given_up_in_the_end() -> None:
    here = world()
    lease = AttemptLease(
        await here.frame([]), here.ports, here.options(beat_s=0.01, longest_s=100.0)
    )
    assert await lease.claim()
    here.clock.advance(50)
    lease.expires_at += 100
    here.clock.advance(50)
    with pytest.raises(LeaseLost, match="assumed hung"):
        async with lease:
            await asyncio.sleep(30)


async def test_a_cancellation_from_outside_is_not_taken_for_a_lost_lease() -> None:
    here = world()
    lease = AttemptLease(await here.frame([]), here.ports, here.options())
    assert await lease.claim()

    held = asyncio.Event()

    async def hold() -> None:
        async with lease:
            held.set()
            await asyncio.sleep(30)

    holding = asyncio.ensure_future(hold())
    await held.wait()
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding


async def test_a_lost_lease_leaves_its_task_free_to_go_on() -> None:
    here = world()
    item = await here.frame([])
    lease = AttemptLease(item, here.ports, here.options(beat_s=0.01))
    assert await lease.claim()
    await here.expire(item)
    with pytest.raises(LeaseLost):
        async with lease:
            await asyncio.sleep(30)
    await turns()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
