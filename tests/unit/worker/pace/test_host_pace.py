"""Hosts that ask to wait are not asked before, and then at the rate they accept."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import nullcontext
from datetime import UTC, datetime
from random import Random

import pytest

from streams.clock import SystemClock
from streams.dev.simulator.virtual import VirtualClock, VirtualLoop, run
from streams.worker.pace.host_rate import HostRate
from streams.worker.pace.hosts import HostPace, HostPaces, note_answer, retry_after_s

NOW = datetime(2026, 5, 16, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0),
        (" 0 ", 0.0),
        ("Sat, 16 May 2026 12:00:30 GMT", 30.0),
        ("Sat, 16 May 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(text: str, seconds: float | None) -> None:
    assert retry_after_s(text, NOW) == seconds


class Server:
    """Accepts `limit` requests in any second, and answers 429 with Retry-After to the rest."""

    def __init__(self, limit: int, pause: str = "1") -> None:
        self.limit, self.pause = limit, pause
        self._window: deque[float] = deque()
        self.accepted: list[float] = []
        self.refused: list[float] = []

    async def ask(self, pace: HostPace) -> bool:
        loop = asyncio.get_running_loop()
        sent_at = await pace.wait(nullcontext)
        await asyncio.sleep(0.002)
        now = loop.time()
        while self._window and now - self._window[0] >= 1.0:
            self._window.popleft()
        if len(self._window) >= self.limit:
            self.refused.append(now)
            note_answer(pace, sent_at, 429, self.pause)
            return False
        self._window.append(now)
        self.accepted.append(now)
        note_answer(pace, sent_at, 200, None)
        return True


async def test_a_host_is_not_asked_before_it_allows() -> None:
    pace, loop = HostPaces(SystemClock()).of("http://h"), asyncio.get_running_loop()
    sent = await pace.wait(nullcontext)
    note_answer(pace, sent, 429, "1")
    limited_at = loop.time()
    times = []

    async def ask() -> None:
        await pace.wait(nullcontext)
        times.append(loop.time())

    await asyncio.gather(*(ask() for _ in range(3)))
    assert min(times) - limited_at >= 1.0
    assert max(times) > min(times), "they do not all ask at once"


async def test_a_refusal_without_retry_after_pauses_nothing() -> None:
    pace = HostPaces(SystemClock()).of("http://h")
    note_answer(pace, await pace.wait(nullcontext), 503, None)
    note_answer(pace, await pace.wait(nullcontext), 500, "10")
    assert (pace.pause_s, pace.per_second) == (0.0, None)


async def test_a_host_that_fails_now_and_then_pauses_and_keeps_its_rate() -> None:
    pace = HostPaces(SystemClock()).of("http://h")
    for retry_after in ("0", "0", "1"):
        note_answer(pace, await pace.wait(nullcontext), 503, retry_after)
    assert pace.pause_s > 0.9
    assert pace.per_second is None


async def test_hosts_do_not_wait_for_each_other() -> None:
    paces = HostPaces(SystemClock())
    one, other = paces.of("http://a"), paces.of("http://b")
    note_answer(one, await one.wait(nullcontext), 429, "60")
    assert one.pause_s > 59
    await asyncio.wait_for(other.wait(nullcontext), 0.1)
    assert paces.of("http://a") is one


async def test_a_limited_host_is_paced_not_hammered() -> None:
    server, pace = Server(40), HostPaces(SystemClock()).of("http://h")
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def row() -> None:
        while loop.time() - began < 8.0:
            await server.ask(pace)

    await asyncio.gather(*(row() for _ in range(60)))
    # The first burst is refused, and then hardly any.
    later = [at for at in server.refused if at - began > 2.5]
    assert len(later) <= 0.03 * len(server.accepted)
    assert len(server.accepted) >= 0.6 * 40 * 8.0


async def one_after_the_other(pace: HostPace, server: Server, random: Random) -> None:
    """Send frames of 50 requests, with a pause after each frame."""
    loop = asyncio.get_running_loop()
    while loop.time() < 300.0:
        for _ in range(50):
            while not await server.ask(pace):
                pass
            await asyncio.sleep(random.uniform(0.001, 0.006))
        await asyncio.sleep(random.uniform(0.05, 0.25))


@pytest.mark.parametrize("seed", range(5))
def test_a_sequential_sender_makes_up_for_its_pauses(seed: int) -> None:
    loop = VirtualLoop()
    server, pace = Server(50), HostPaces(VirtualClock(loop)).of("http://h")
    run(loop, one_after_the_other(pace, server, Random(seed)))
    assert len(server.accepted) >= 0.93 * 50 * 300
    assert len(server.refused) <= 12


def test_the_rate_is_what_was_accepted_in_the_second_before() -> None:
    rate = HostRate()
    for n in range(50):
        rate.accepted(n * 0.01, n * 0.01, is_wanted=False)
    rate.limited(0.5, 0.51, 1.0)
    assert rate.per_second == pytest.approx(49.0)
    rate.limited(0.4, 0.52, 1.0)  # of the same burst
    assert rate.per_second == pytest.approx(49.0)


def test_an_acceptance_that_arrives_late_counts_too() -> None:
    rate = HostRate()
    for n in range(30):
        rate.accepted(n * 0.01, n * 0.01, is_wanted=False)
    rate.limited(0.5, 0.51, 1.0)
    for n in range(20):
        rate.accepted(0.3 + n * 0.01, 0.52, is_wanted=False)
    assert rate.per_second == pytest.approx(49.0)


def test_a_host_that_does_not_limit_for_long_is_no_longer_paced() -> None:
    rate = HostRate()
    rate.limited(0.0, 0.0, 1.0)
    assert rate.per_second is not None
    rate.accepted(400.0, 400.0, is_wanted=True)
    assert rate.per_second is None
