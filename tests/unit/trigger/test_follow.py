"""Whoever waits for an execution waits out a restart of the log, and no longer than told."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import streams.trigger.follow as follow
from streams.cli.patience import patiently
from streams.clock import SettableClock
from streams.errors import Unavailable
from streams.events.model import Event, Root
from streams.log.errors import LogUnavailable
from streams.log.memory import MemoryEventStore
from streams.trigger.follow import Follower
from streams.trigger.port import Entered, Origin
from tests.support.projector.executions import Story, memory_log

ORIGIN = Origin("topic-id", 0, 7, "noetl.triggers")


class Restarting:
    """A log and its ledger that are away for some calls."""

    def __init__(self, log: MemoryEventStore, clock: SettableClock, *, away: int) -> None:
        self._log, self._clock, self.away = log, clock, away

    def _answer(self) -> None:
        self._clock.advance(1)
        if self.away:
            self.away -= 1
            raise LogUnavailable("Postgres does not answer: ConnectionResetError; try again")

    async def find(self, origin: Origin) -> Entered | None:
        self._answer()
        return Entered(origin, execution_id=1000)

    async def read_root(self, root: Root, *, after_seq: int = 0) -> AsyncIterator[Event]:
        self._answer()
        async for event in self._log.read_root(root, after_seq=after_seq):
            yield event


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "AWAY_PAUSE_S", 0.0)


async def restarting(away: int, timeout_s: float) -> Follower:
    log, clock = memory_log(), SettableClock()
    await log.append(Story(1000).whole())
    server = Restarting(log, clock, away=away)
    return Follower(server, server, clock, timeout_s=timeout_s)  # type: ignore[arg-type]


async def test_a_log_that_is_restarted_is_waited_for() -> None:
    follower = await restarting(away=5, timeout_s=60)
    assert await follower.execution(ORIGIN) == 1000
    follower = await restarting(away=5, timeout_s=60)
    assert (await follower.end(1000)).status == "COMPLETED"


async def test_a_log_that_stays_away_is_reported_when_the_time_is_over() -> None:
    follower = await restarting(away=1000, timeout_s=10)
    with pytest.raises(LogUnavailable, match="does not answer"):
        await follower.end(1000)


async def test_a_command_is_repeated_and_reports_what_it_waits_for_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tries: list[int] = []

    async def attempt() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise LogUnavailable("down")
        return "rows"

    assert await patiently(attempt, 5.0) == "rows"
    assert capsys.readouterr().err.count("Postgres does not answer; waiting up to 5 s") == 1


async def test_a_command_gives_up_with_the_last_error() -> None:
    async def attempt() -> str:
        raise LogUnavailable("down for good")

    with pytest.raises(Unavailable, match="down for good"):
        await patiently(attempt, 0.1)
