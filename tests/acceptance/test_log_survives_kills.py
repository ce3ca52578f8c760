"""Postgres dies in the middle of appends: what was acknowledged is there, and work goes on."""

from __future__ import annotations

import asyncio
import hashlib
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
import pytest

from streams.app import Log, open_log
from streams.errors import Unavailable
from streams.local.service import ServiceState
from streams.local.settings import stack_settings
from streams.local.stack import running
from streams.local.state import ServiceStatus, StackState, find_stack
from streams.mirror.watermark import Watermark
from streams.settings import Settings, load
from tests.support.log.databases import dsn, event, root_events
from tests.support.servers.shared import embedded_folder
from tests.support.waiting import until

pytestmark = pytest.mark.stack

CALLERS = 16
ACKNOWLEDGED_BETWEEN_KILLS = 300
TIMEOUT_S = 90


@dataclass(slots=True)
class Load:
    """Callers that append for as long as they are wanted, and the answers they got."""

    log: Log
    roots: list[int]
    events: list[tuple[int, int, int]] = field(default_factory=list)
    wanted: bool = True

    async def caller(self, number: int) -> None:
        root = self.roots[number % len(self.roots)]
        while self.wanted:
            one = event(root, node_name=f"step-{number}")
            while True:
                try:
                    receipt = await self.log.store.append([one])
                    break
                except Unavailable:
                    await asyncio.sleep(0.1)  # asking again is safe; the promise of the port
            given = receipt.events[0]
            self.events.append((root, given.seq, given.event_id))


@pytest.fixture
async def stack(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Path]:
    """An embedded stack whose Postgres may be killed: the tests' own one where it is embedded."""
    if folder := embedded_folder(settings, tmp_path_factory.getbasetemp()):
        yield folder
        return
    data = tmp_path_factory.mktemp("killed")
    async with running(data):
        yield data


@asynccontextmanager
async def appending(log: Log) -> AsyncIterator[Load]:
    """Let callers append for as long as the body runs; then let each finish its last one."""
    work = Load(log, log.ids.take(4))
    callers = [asyncio.create_task(work.caller(number)) for number in range(CALLERS)]
    try:
        yield work
    finally:
        work.wanted = False
        await asyncio.gather(*callers)


async def test_postgres_is_killed_during_appends(stack: Path) -> None:
    settings = load(env={}, stack=stack_settings(_state(stack))).settings
    async with open_log(settings, role="test") as log:
        async with appending(log) as work:
            await _more_acknowledged(work)
            for whole_family in (False, True):
                before = _postgres(stack)
                _kill(before, whole_family=whole_family)
                await _more_acknowledged(work)
                await until(partial(_is_restarted, stack, before), within_s=TIMEOUT_S)
        await _every_acknowledged_event_is_there(log, work)
    await _the_mirror_goes_on(settings)


def _state(stack: Path) -> StackState:
    state = find_stack(stack)
    assert state is not None, "the supervisor has gone, too"
    return state


def _postgres(stack: Path) -> ServiceStatus:
    return next(part for part in _state(stack).services if part.name == "postgres")


def _kill(postgres: ServiceStatus, *, whole_family: bool) -> None:
    """Kill -9 the server alone, or with every process of its, as a power cut would."""
    assert postgres.pid is not None
    assert postgres.state is ServiceState.READY
    server = psutil.Process(postgres.pid)
    family = server.children(recursive=True) if whole_family else []
    for process in [server, *family]:
        process.send_signal(signal.SIGKILL)


async def _more_acknowledged(work: Load) -> None:
    """Wait until the callers got on: the appender found the new server by itself."""
    goal = len(work.events) + ACKNOWLEDGED_BETWEEN_KILLS
    await until(lambda: len(work.events) >= goal, within_s=TIMEOUT_S)


def _is_restarted(stack: Path, before: ServiceStatus) -> bool:
    now = _postgres(stack)
    again = now.restarts > before.restarts and now.pid != before.pid
    return again and now.state is ServiceState.READY


async def _every_acknowledged_event_is_there(log: Log, work: Load) -> None:
    found = []
    for root in work.roots:
        chain = bytes(32)
        events = await root_events(log.store, root)
        assert [one.seq for one in events] == list(range(1, len(events) + 1))
        for one in events:
            chain = hashlib.sha256(chain + bytes.fromhex(one.checksum)).digest()
            assert one.chain == chain.hex()
            found.append((root, one.seq, one.event_id))
    assert sorted(found) == sorted(work.events)


async def _the_mirror_goes_on(settings: Settings) -> None:
    """What follows in this stack finds it in order again."""
    bootstrap = settings.event_store.connection.url
    async with Watermark(dsn(settings, "append"), bootstrap) as watermark:
        await watermark.catch_up(timeout_s=TIMEOUT_S)
