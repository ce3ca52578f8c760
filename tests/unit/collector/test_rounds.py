"""The collector by itself: when it ends results, when it sweeps, and what a failure does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from streams.collector.collect import GRACE
from streams.collector.core import EventExtract, RootState
from streams.collector.port import CollectorPorts
from streams.collector.rounds import RETRY_S, Rounds
from streams.events.types import ResultStored
from streams.log.errors import LogUnavailable
from streams.settings import load
from tests.conftest import make_event
from tests.support.collector.memory import World

MINUTE, DAY = 60.0, 86_400.0


class House(World):
    """A world whose ports can be shut, with rounds over it."""

    is_shut: Exception | None = None
    opened = 0

    @asynccontextmanager
    async def open_ports(self) -> AsyncIterator[CollectorPorts]:
        self.opened += 1
        if self.is_shut:
            raise self.is_shut
        yield self.ports

    def rounds(self, *, end: float = MINUTE, sweep: float = DAY) -> Rounds:
        return Rounds(self.open_ports, end, sweep, None, self.clock.monotonic)

    async def store_result(self, root_id: int) -> None:
        """Let an execution hold a result whose time is over."""
        await self.log.append([make_event(root_id)])
        stored = ResultStored(
            node_name="a",
            result_id=root_id,
            store="object",
            scope="step",
            expires_at="2020-01-01T00:00:00Z",
        )
        self.ledger.roots[root_id] = (
            RootState(root_id, "execution", "acme", "care", None),
            [EventExtract(1, frozenset(), stored)],
        )

    async def has_ended(self, root_id: int) -> bool:
        found = [e.type async for e in self.log.read_root(make_event(root_id).root)]
        return "result.expired" in found


async def test_objects_are_swept_at_first_and_then_seldom_and_results_ended_often() -> None:
    house = House()
    rounds = house.rounds()
    await rounds.once()
    first = house.ledger.swept_at
    assert first == house.clock.now()
    house.clock.advance(MINUTE)
    await house.store_result(7)
    await rounds.once()
    assert await house.has_ended(7)
    assert house.ledger.swept_at == first
    house.clock.advance(DAY)
    await house.rounds().once()
    assert house.ledger.swept_at == house.clock.now(), "another process knows of the first"


async def test_each_can_be_switched_off() -> None:
    house = House()
    await house.store_result(7)
    await house.rounds(sweep=0).once()
    assert (await house.has_ended(7), house.ledger.swept_at) == (True, None)
    await house.store_result(8)
    await house.ledger.mark_swept()
    await house.rounds(end=0).once()
    assert not await house.has_ended(8)


@pytest.mark.parametrize("error", [LogUnavailable("it is down"), KeyError("a bug")])
async def test_a_failure_is_said_and_the_next_round_goes_on(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    house = House()
    rounds = house.rounds()
    house.is_shut = error
    await rounds.once()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    house.is_shut = None
    await rounds.once()
    assert house.ledger.swept_at is not None


async def test_a_sweep_that_failed_waits_while_results_are_ended() -> None:
    house = House()
    await house.put(b"another log's")
    rounds = house.rounds()
    await rounds.once()
    await house.store_result(7)
    await rounds.once()
    assert (await house.has_ended(7), house.ledger.swept_at) == (True, None)
    house.name(await house.put(b"ours"), root_id=9)
    house.clock.advance(RETRY_S)
    await rounds.once()
    assert house.ledger.swept_at is not None


class Stopping(House):
    """Notes when its ports are opened, by a clock that each pause takes forward."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.at = self.clock.monotonic(), list[float]()

    @asynccontextmanager
    async def open_ports(self) -> AsyncIterator[CollectorPorts]:
        self.at.append(self.clock.monotonic() - self.begun)
        async with super().open_ports() as ports:
            yield ports

    async def make(self, rounds: Rounds, count: int) -> list[float]:
        """Make so many rounds with the pauses between them; return when each was made."""
        for _ in range(count):
            await rounds.once()
            self.clock.advance(rounds._pause_s)
        return self.at


async def test_a_sweep_that_failed_is_tried_after_an_hour_though_no_results_are_ended() -> None:
    house = Stopping()
    await house.put(b"another log's")
    assert await house.make(house.rounds(end=0), 3) == [0, RETRY_S, 2 * RETRY_S]
    house.name(await house.put(b"ours"), root_id=9)
    assert await house.make(house.rounds(end=0), 2) == [
        *(0, RETRY_S, 2 * RETRY_S),
        *(3 * RETRY_S, 3 * RETRY_S + DAY),
    ]


async def test_a_log_that_is_away_is_asked_after_an_hour_though_no_results_are_ended() -> None:
    house = Stopping()
    house.is_shut = LogUnavailable("it is down")
    assert await house.make(house.rounds(end=0), 2) == [0, RETRY_S]


async def test_a_start_does_not_put_a_sweep_off() -> None:
    house = Stopping()
    await house.ledger.mark_swept()
    house.clock.advance(DAY - 3600)
    house.begun = house.clock.monotonic()
    assert await house.make(house.rounds(end=0), 3) == [0, 3600, 3600 + DAY]
    house.at.clear()
    house.begun = house.clock.monotonic()
    assert await house.make(house.rounds(), 3) == [0, MINUTE, 2 * MINUTE]


async def test_what_is_missing_or_damaged_is_said(caplog: pytest.LogCaptureFixture) -> None:
    house = House()
    gone, damaged = await house.put(b"gone"), await house.put(b"damaged")
    house.name(gone, damaged)
    await house.store.delete(gone)
    await house.objects.write(f"acme/care/sha256/{damaged.sha256}", b"other")
    await house.rounds().once()
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert [gone.sha256 in said[1], damaged.sha256 in said[0]] == [True, True]


@pytest.mark.parametrize("every", [0.01, 0.0])
async def test_rounds_go_on_until_they_are_told_to_stop(every: float) -> None:
    house, stop = House(), asyncio.Event()
    going = asyncio.create_task(house.rounds(end=every, sweep=every).run(stop))
    await asyncio.sleep(0.2)
    assert (house.opened > 2) == (every > 0)
    stop.set()
    await asyncio.wait_for(going, 1)


async def test_results_of_an_execution_end_with_it_as_soon_as_the_rounds_are_set_to() -> None:
    house = House()
    await house.log.append([make_event(7)])
    ended = RootState(7, "execution", "acme", "care", house.clock.now())
    stored = ResultStored(node_name="a", result_id=7, store="object", scope="execution")
    house.ledger.roots[7] = (ended, [EventExtract(1, frozenset(), stored)])
    house.clock.advance(MINUTE)
    await house.rounds(sweep=0).once()
    assert not await house.has_ended(7)
    at_once = house.rounds(sweep=0)
    at_once.scope_grace = timedelta(0)
    await at_once.once()
    assert await house.has_ended(7)


def test_how_long_results_outlive_their_execution_is_a_setting() -> None:
    usual = load(env={}).settings.payload_store.gc
    at_once = load(env={"STREAMS__PAYLOAD_STORE__GC__SCOPE_GRACE_SECONDS": "0"}).settings
    assert usual.scope_grace == GRACE
    assert at_once.payload_store.gc.scope_grace == timedelta(0)
