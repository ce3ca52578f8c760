"""Connect is killed again and again while events are appended: nobody notices but the clock."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from streams.app import Log
from streams.events.model import Root
from streams.kafka.event_reader import EventRecord, EventTopicReader
from streams.kafka.names import event_topic
from streams.local.state import find_stack
from streams.mirror.tally import MirrorTally
from streams.mirror.watermark import Watermark
from streams.settings import Settings
from tests.conftest import NewEventFactory

pytestmark = pytest.mark.stack

KILLS_COUNT, ROOTS_COUNT = 3, 50
PAUSE_S = 0.07  # one event to each root at a time, about 500 to 700 a second
UNDER_LOAD_S = 4.0


class Load:
    """Appends to fifty roots until it is stopped, and counts what was acknowledged."""

    def __init__(self, log: Log, new_event: NewEventFactory) -> None:
        self._log, self._new_event = log, new_event
        self.heads = {Root("execution", log.ids.next()): 0 for _ in range(ROOTS_COUNT)}
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        while not self._stopped.is_set():
            batch = [self._new_event(root.id, idempotency_key=uuid4().hex) for root in self.heads]
            receipt = await self._log.store.append(batch)
            for root, appended in zip(self.heads, receipt.events, strict=True):
                self.heads[root] = max(self.heads[root], appended.seq)
            await _pause(self._stopped, PAUSE_S)

    def stop(self) -> None:
        self._stopped.set()


class Count:
    """Reads what is committed, all the time, as a consumer would."""

    def __init__(self, reader: EventTopicReader, load: Load) -> None:
        self._reader, self._load = reader, load
        self.tally = MirrorTally()
        self._stopped = asyncio.Event()
        self._newest_ms = 0
        self._moved = asyncio.Condition()

    async def run(self) -> None:
        while not self._stopped.is_set():
            self._add(await self._reader.batch())
            async with self._moved:
                self._moved.notify_all()
        async for batch in self._reader.to_end():
            self._add(batch)

    def stop(self) -> None:
        self._stopped.set()

    def _add(self, batch: list[EventRecord]) -> None:
        for record in batch:
            root = Root("execution", int(record.key or b"0"))
            if root in self._load.heads:
                self.tally.add(root, int(dict(record.headers)["seq"] or b"0"))
                self._newest_ms = max(self._newest_ms, record.timestamp_ms)

    async def sees_event_after(self, at_ms: float) -> None:
        """Return once an event that the log took in later than `at_ms` was read."""
        async with asyncio.timeout(120), self._moved:
            await self._moved.wait_for(lambda: self._newest_ms > at_ms)


async def test_connect_killed_three_times_under_load_loses_and_doubles_nothing(
    settings: Settings, log: Log, new_event: NewEventFactory
) -> None:
    data = Path(settings.connect.secrets_dir or "").parent
    if find_stack(data) is None:
        pytest.skip("only the embedded stack lets us kill its parts")
    bootstrap = settings.event_store.connection.url
    dsn = settings.event_store.canonical_connection.dsn("append")
    load = Load(log, new_event)
    async with (
        EventTopicReader(bootstrap, [event_topic("execution")], start="end") as reader,
        Watermark(dsn, bootstrap) as mark,
    ):
        count = Count(reader, load)
        appending, counting = asyncio.create_task(load.run()), asyncio.create_task(count.run())
        back_s = []
        for _ in range(KILLS_COUNT):
            await _pause(asyncio.Event(), UNDER_LOAD_S)
            os.kill(_pid_of_connect(data), signal.SIGKILL)
            killed_at = time.time()
            await count.sees_event_after(killed_at * 1000)
            back_s.append(time.time() - killed_at)
        await _pause(asyncio.Event(), UNDER_LOAD_S)
        load.stop()
        await appending
        await mark.catch_up(timeout_s=120)
        count.stop()
        await counting
    verdict = count.tally.against(load.heads, {})
    print(f"{verdict}; mirroring again after {[round(one, 1) for one in back_s]} s")  # noqa: T201
    assert verdict.first is None
    assert (verdict.lost_count, verdict.doubled_count) == (0, 0)
    assert verdict.events_count == sum(load.heads.values())
    assert verdict.events_count > KILLS_COUNT * 1000


def _pid_of_connect(data: Path) -> int:
    state = find_stack(data)
    assert state is not None
    (pid,) = (part.pid for part in state.services if part.name == "connect")
    assert pid is not None
    assert psutil.pid_exists(pid)
    return pid


async def _pause(unless: asyncio.Event, seconds: float) -> None:
    """Keep the pace of the load; nothing is waited for here."""
    try:
        async with asyncio.timeout(seconds):
            await unless.wait()
    except TimeoutError:
        return
