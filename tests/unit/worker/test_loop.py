from __future__ import annotations

import asyncio
from typing import Any

from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.work.item import WorkItem
from streams.worker.loop import Worker
from tests.support.waiting import until
from tests.support.worker.memory import FakeTool, World, loop_step, task
from tests.support.worker.running import run_worker

TOPIC = "noetl.work.default"
ECHO = task("echo", "t", {"n": "{{ item }}"})


class Running:
    """A worker on a topic in memory, until the test leaves."""

    def __init__(self, here: World, topics: MemoryTopics, **options: Any) -> None:
        self.feed = MemoryFeed(topics, [TOPIC], group="work", idle_s=0.005)
        self._worker = Worker(self.feed, here.ports, here.options(**options))
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Running:
        self._task = asyncio.ensure_future(run_worker(self._worker, self.feed, self._stop))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await self._task

    @property
    def is_done(self) -> bool:
        return self._task.done()


def world(**tools: Any) -> World:
    return World(loop_step(ECHO), {"t": FakeTool(), **tools})


def gated() -> FakeTool:
    tool = FakeTool()
    tool.gate = asyncio.Event()
    return tool


def write(topics: MemoryTopics, *items: WorkItem) -> None:
    topics.write(TOPIC, [item.encode() for item in items])


async def test_items_are_run_and_acknowledged() -> None:
    here, topics = world(), MemoryTopics()
    write(topics, *[await here.frame(["a"], frame_id=n) for n in (1, 2, 3)])
    async with Running(here, topics):
        await until(lambda: topics.lag("work", TOPIC) == 0)
    assert len(await here.events("frame.committed")) == 3


async def test_a_record_that_is_no_item_is_set_aside_and_the_partition_moves_on() -> None:
    here, topics = world(), MemoryTopics()
    topics.write(TOPIC, [b"{", None])
    write(topics, await here.frame(["a"]))
    async with Running(here, topics):
        await until(lambda: topics.lag("work", TOPIC) == 0)
    assert len(here.dead_letters.reasons) == 2
    assert here.dead_letters.reasons[0].startswith("not a work item")
    assert len(await here.events("frame.committed")) == 1


async def test_a_frame_that_hangs_is_not_acknowledged_by_its_neighbours() -> None:
    tool = gated()
    here, topics = world(t=tool), MemoryTopics()
    policy = {"parallelism": 4}
    hanging = await here.frame(["a"], frame_id=1, policy=policy)
    empty = [await here.frame([], frame_id=n, policy=policy) for n in (2, 3)]
    write(topics, hanging, *empty)
    async with Running(here, topics, grace_s=0.0) as running:
        await until(lambda: running.feed.standing().progress == 2)
        assert topics.committed["work", next(iter(running.feed.partitions))] == 0
    assert topics.lag("work", TOPIC) == 3


async def test_an_item_that_comes_twice_is_run_once_and_both_are_acknowledged() -> None:
    tool = gated()
    here, topics = world(t=tool), MemoryTopics()
    item = await here.frame(["a"])
    write(topics, item, item)
    async with Running(here, topics):
        await until(lambda: len(tool.calls) == 1)
        assert tool.gate is not None
        tool.gate.set()
        await until(lambda: topics.lag("work", TOPIC) == 0)
        write(topics, item)
        await until(lambda: topics.lag("work", TOPIC) == 0)
    assert len(tool.calls) == 1


async def test_a_stage_runs_as_many_frames_at_once_as_its_policy_says() -> None:
    tool = gated()
    here, topics = world(t=tool), MemoryTopics()
    policy = {"parallelism": 2}
    write(topics, *[await here.frame(["a"], frame_id=n, policy=policy) for n in range(1, 7)])
    async with Running(here, topics, slots=4):
        await until(lambda: len(tool.calls) == 2)
        await asyncio.sleep(0.02)
        assert len(tool.calls) == 2
        assert tool.gate is not None
        tool.gate.set()
        await until(lambda: topics.lag("work", TOPIC) == 0)
    assert len(await here.events("frame.committed")) == 6


async def test_a_stopping_worker_finishes_what_it_can() -> None:
    tool = gated()
    here, topics = world(t=tool), MemoryTopics()
    write(topics, await here.frame(["a"]))
    async with Running(here, topics, grace_s=5.0):
        await until(lambda: len(tool.calls) == 1)
        assert tool.gate is not None
        asyncio.get_running_loop().call_later(0.02, tool.gate.set)
    assert (await here.last()).type == "frame.committed"
    assert topics.lag("work", TOPIC) == 0


async def test_a_stopping_worker_hands_back_what_does_not_finish() -> None:
    tool = gated()
    here, topics = world(t=tool), MemoryTopics()
    write(topics, await here.frame(["a"], frame_id=1), await here.frame(["b"], frame_id=2))
    async with Running(here, topics, grace_s=0.01, slots=1):
        await until(lambda: len(tool.calls) == 1)
    assert (await here.last()).type == "frame.released"
    assert len(await here.events("frame.claimed")) == 1


async def test_an_error_nobody_expected_ends_the_worker() -> None:
    here, topics = world(), MemoryTopics()
    write(topics, await here.frame(["a"]))

    async def broken(batch: Any) -> Any:
        raise ZeroDivisionError("a bug in the log")

    here.log.append = broken  # type: ignore[method-assign]
    running = Running(here, topics)
    try:
        async with running:
            await until(lambda: running.is_done)
    except ZeroDivisionError:
        assert topics.lag("work", TOPIC) == 1
    else:
        raise AssertionError("it went on")
