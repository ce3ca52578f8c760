"""Planner and worker together on a log in memory, for playbooks given as text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from streams.events.model import Event
from streams.execution.plan import Plan
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.log.port import Frontier
from streams.playbook.parse import parse
from streams.worker.attempt.children import Children
from streams.worker.attempt.input import Documents
from streams.worker.await_executions import EndedExecutions
from streams.worker.loop import Worker
from streams.worker.options import Options, WorkerPorts
from streams.worker.tools.noop import NoopTool
from streams.worker.tools.playbook import PlaybookTool
from tests.support.planner.memory import World
from tests.support.worker.memory import NoDeadLetters
from tests.support.worker.running import run_worker

TOPIC = "noetl.work.default"
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\n"


class Whole:
    """A planner fed by the log, a worker fed by the planner; the first playbook is started."""

    def __init__(self, *texts: str, slots: int = 1, **tools: Any) -> None:
        playbooks = [parse(HEAD + text) for text in texts]
        self.world = World(playbooks[0])
        self.world.playbooks.all = dict(enumerate(playbooks, start=7))
        self.topics = MemoryTopics()
        world = self.world
        children = Children(world.store, world.playbooks, world.payloads, world.clock)
        call = PlaybookTool(children, EndedExecutions(world.store), world.payloads)
        ports = WorkerPorts(
            log=world.store,
            payloads=world.payloads,
            documents=Documents(world.payloads),
            playbooks=world.playbooks,
            tools={"noop": NoopTool(), "playbook": call, **tools},
            clock=world.clock,
            dead_letters=NoDeadLetters(),
        )
        self.counts = ports.counts
        self.feed = MemoryFeed(self.topics, [TOPIC], group="work", idle_s=0.005)
        self.worker = Worker(self.feed, ports, Options(name="w/1", slots=slots))

    async def until(self, ends: Callable[[], Awaitable[bool]]) -> None:
        """Plan and publish until `ends` says so."""
        async with asyncio.timeout(60):
            while not await ends():
                await self.world.pump()
                items = [item for item in self.world.take() if item.pool == "default"]
                self.topics.write(TOPIC, [item.encode() for item in items])
                await asyncio.sleep(0.002)

    async def result(self) -> Plan:
        """Run the first playbook to its end."""

        async def has_ended() -> bool:
            return (await self.world.plan()).has_ended

        await self.until(has_ended)
        return await self.world.plan()

    async def events(self, *types: str) -> list[Event]:
        """Return the events of all executions, of these types."""
        found, _ = await self.world.store.read_log(Frontier(), limit=10_000)
        return [event for event in found if event.type in types]

    async def rows(self, step: str) -> list[Any]:
        """Return what the rows of a loop step gave, in the order of its frames' commits."""
        documents, found = Documents(self.world.payloads), []
        for event in await self.events("frame.committed"):
            if event.node_name == step and event.payload_ref is not None:
                found += await documents.read(event.payload_ref)
        return found


@asynccontextmanager
async def whole(*texts: str, workload: Any = None, **options: Any) -> AsyncIterator[Whole]:
    """Start the first of these playbooks, and a worker with these tools."""
    made, stop = Whole(*texts, **options), asyncio.Event()
    await made.world.start(workload)
    running = asyncio.ensure_future(run_worker(made.worker, made.feed, stop))
    try:
        yield made
    finally:
        stop.set()
        await running
