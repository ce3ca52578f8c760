"""A role's process: an exception ends it, what is unavailable is held, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.errors import Unavailable
from streams.kafka.errors import Stalled
from streams.kafka.feed.crash_journal import JournalFile
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.port import Record
from streams.kafka.feed.process import RoleProcess
from streams.kafka.feed.record_suspects import Batch


def process_in(folder: Path) -> RoleProcess:
    return RoleProcess(lambda name: JournalFile(folder / f"{name}.journal"))


class Role:
    """A role that notes what it was given; `before` may raise or wait."""

    def __init__(self, folder: Path, topics: MemoryTopics) -> None:
        self.topics, self.folder = topics, folder
        self.feed = MemoryFeed(topics, ["things"], group="role", idle_s=0.01)
        self.handled: list[str] = []
        self.batches: list[int] = []
        self.aside: list[str] = []
        self.before: Callable[[str], object] = lambda value: None
        self.stop = asyncio.Event()

    async def handle(self, batch: Batch) -> None:
        records = [record for found in batch.values() for record in found]
        self.batches.append(len(records))
        for record in records:
            value = (record.value or b"").decode()
            if asyncio.iscoroutine(waiting := self.before(value)):
                await waiting
            self.handled.append(value)
        self.feed.acknowledge(records)

    async def set_aside(self, record: Record) -> None:
        self.aside.append((record.value or b"").decode())

    async def run(self, *, stall_s: float = 60.0) -> None:
        process = process_in(self.folder)
        process.attach(self.feed, self.handle, set_aside=self.set_aside, stall_s=stall_s)
        async with asyncio.timeout(20):
            await process.run(self.stop, lambda: None)

    async def run_until(self, holds: Callable[[], bool]) -> None:
        running = asyncio.create_task(self.run())
        async with asyncio.timeout(20):
            while not holds() and not running.done():  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)
        self.stop.set()
        await running


@pytest.fixture
def topics() -> MemoryTopics:
    return MemoryTopics()


def raiser(bad: str, error: Exception) -> Callable[[str], object]:
    def before(value: str) -> None:
        if value == bad:
            raise error

    return before


async def test_batches_reach_the_handler_and_are_committed(tmp_path, topics):
    topics.write("things", [b"a", b"b"])
    role = Role(tmp_path, topics)
    await role.run_until(lambda: len(role.handled) == 2)
    assert role.handled == ["a", "b"]
    assert topics.lag("role", "things") == 0


async def test_an_exception_of_the_handler_reaches_whoever_runs_the_process(tmp_path, topics):
    topics.write("things", [b"bad", b"next"])
    role = Role(tmp_path, topics)
    role.before = raiser("bad", ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError, match="a bug"):
        await role.run()
    assert role.handled == [], "Faust would have gone on with the next"
    assert topics.lag("role", "things") == 2


async def test_an_exception_of_the_feed_reaches_whoever_runs_the_process(tmp_path, topics):
    role = Role(tmp_path, topics)

    async def broken() -> Batch:
        raise OSError("the feed broke")

    role.feed.next_batch = broken
    with pytest.raises(OSError, match="the feed broke"):
        await role.run()


async def test_what_is_unavailable_is_held_and_handled_again(tmp_path, topics):
    topics.write("things", [b"a"])
    role = Role(tmp_path, topics)
    calls: list[str] = []

    def before(value: str) -> None:
        calls.append(value)
        if len(calls) < 3:
            raise Unavailable("the database is down")

    role.before = before
    await role.run_until(lambda: bool(role.handled))
    assert (calls, role.handled) == (["a"] * 3, ["a"])


async def test_a_record_that_ends_the_process_three_times_is_set_aside(tmp_path, topics):
    topics.write("things", [b"a", b"bad", b"c"])
    for _ in range(3):
        role = Role(tmp_path, topics)
        role.before = raiser("bad", ZeroDivisionError("a bug"))
        with pytest.raises(ZeroDivisionError):
            await role.run()
    role = Role(tmp_path, topics)
    role.before = raiser("bad", ZeroDivisionError("a bug"))
    await role.run_until(lambda: "c" in role.handled)
    assert (role.aside, role.handled) == (["bad"], ["c"])
    assert topics.lag("role", "things") == 0


async def test_stopping_while_a_record_is_handled_never_counts_against_it(tmp_path, topics):
    topics.write("things", [b"slow"])
    for _ in range(4):
        role = Role(tmp_path, topics)
        began = asyncio.Event()

        async def hang(began: asyncio.Event = began) -> None:
            began.set()
            await asyncio.sleep(3600)

        role.before = lambda _, hang=hang: hang()
        running = asyncio.create_task(role.run())
        await asyncio.wait_for(began.wait(), 20)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    role = Role(tmp_path, topics)
    await role.run_until(lambda: bool(role.handled))
    assert (role.aside, role.handled) == ([], ["slow"])


async def test_stop_lets_the_batch_under_way_finish(tmp_path, topics):
    topics.write("things", [b"a"])
    role = Role(tmp_path, topics)

    async def slowly() -> None:
        role.stop.set()
        await asyncio.sleep(0.1)

    role.before = lambda _: slowly()
    await role.run()
    assert role.handled == ["a"]
    assert topics.lag("role", "things") == 0


async def test_a_handler_that_hangs_ends_the_process(tmp_path, topics, capsys):
    topics.write("things", [b"hangs"])
    role = Role(tmp_path, topics)
    role.before = lambda _: asyncio.sleep(3600)
    with pytest.raises(Stalled, match="1 records are pending and none was finished"):
        await role.run(stall_s=0.3)
    assert "handle" in capsys.readouterr().err, "and where it hung is reported"


async def test_a_timer_that_raises_ends_the_process(tmp_path):
    process = process_in(tmp_path)

    async def tick() -> None:
        raise ZeroDivisionError("a bug")

    process.every(0.01, tick)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(process.run(asyncio.Event(), lambda: None), 10)


async def test_a_timer_outlives_what_is_unavailable(tmp_path):
    process, ticks, stop = process_in(tmp_path), [], asyncio.Event()

    async def tick() -> None:
        ticks.append(1)
        if len(ticks) == 3:
            stop.set()
        raise Unavailable("down")

    process.every(0.01, tick)
    await asyncio.wait_for(process.run(stop, lambda: None), 10)
    assert len(ticks) >= 3


async def test_an_idle_process_uses_almost_no_processor(tmp_path, topics):
    role = Role(tmp_path, topics)
    role.feed = MemoryFeed(topics, ["things"], group="role", idle_s=0.5)
    running = asyncio.create_task(role.run())
    await asyncio.sleep(0.3)
    began = time.process_time()
    await asyncio.sleep(1.0)
    used = time.process_time() - began
    role.stop.set()
    await running
    assert used < 0.05


BLOCKED_LOOP = """
import asyncio, sys, time
from pathlib import Path
from streams.kafka.feed.crash_journal import JournalFile
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.process import RoleProcess

async def main():
    topics = MemoryTopics()
    topics.write("things", [b"hangs"])
    async def handle(batch):
        time.sleep(3600)
    folder = Path(sys.argv[1])
    process = RoleProcess(lambda name: JournalFile(folder / f"{name}.journal"))
    feed = MemoryFeed(topics, ["things"], group="role")
    process.attach(feed, handle, set_aside=lambda record: None, stall_s=0.5)
    await process.run(asyncio.Event(), lambda: None)

asyncio.run(main())
"""


def test_a_process_whose_event_loop_hangs_is_ended_with_its_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED_LOOP, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[2],
        env=dict(os.environ),
    )
    assert done.returncode == 70
    assert "the event loop hangs" in done.stderr
    assert "in handle" in done.stderr


FROZEN = """
import asyncio, sys
from pathlib import Path
from streams.kafka.feed.crash_journal import JournalFile
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.process import RoleProcess

async def main():
    topics = MemoryTopics()
    topics.write("things", [b"slow"])
    stop = asyncio.Event()
    async def handle(batch):
        print("begun", flush=True)
        await asyncio.sleep(0.5)
        feed.acknowledge(record for records in batch.values() for record in records)
        stop.set()
    folder = Path(sys.argv[1])
    process = RoleProcess(lambda name: JournalFile(folder / f"{name}.journal"))
    feed = MemoryFeed(topics, ["things"], group="role")
    process.attach(feed, handle, set_aside=lambda record: None, stall_s=2)
    await process.run(stop, lambda: None)

asyncio.run(main())
"""


def test_a_process_that_was_frozen_for_longer_than_a_stall_goes_on(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", FROZEN, str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(4)
        process.send_signal(signal.SIGCONT)
        assert process.wait(timeout=30) == 0
