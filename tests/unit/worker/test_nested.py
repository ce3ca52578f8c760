"""Planner and worker together on a log in memory: playbooks that call playbooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from streams.envelope.model import Event
from streams.execution.plan import Plan
from streams.feed.memory import MemoryFeed, MemoryTopics
from streams.log.port import Frontier
from streams.playbook.parse import parse
from streams.worker.children import Children
from streams.worker.endings import Endings
from streams.worker.input import Documents
from streams.worker.loop import Worker
from streams.worker.options import Options, Ports
from streams.worker.tools.noop import NoopTool
from streams.worker.tools.playbook import PlaybookTool
from tests.unit.planner.world import World
from tests.unit.worker.stage import NoDeadLetters

TOPIC = "noetl.work.default"
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\n"
DOUBLE = """
metadata: {path: tests/double}
workflow:
  - step: double
    tool: {kind: noop, data: {twice: "{{ workload.n * 2 }}"}}
return: {value: "{{ double.twice }}"}
"""
EACH = """
metadata: {path: tests/each}
workload: {rows: []}
workflow:
  - step: each
    loop:
      in: "{{ workload.rows }}"
      iterator: n
      spec: {mode: parallel, max_in_flight: 8}
      frame_policy: {size: 3, parallelism: 4}
    tool:
      - call: {kind: playbook, path: tests/double, workload: {n: "{{ iter.n }}"}}
      - keep: {kind: noop, data: "{{ call.value }}"}
"""
OUTER = """
metadata: {path: tests/outer}
workload: {lists: []}
workflow:
  - step: outer
    loop: {in: "{{ workload.lists }}", iterator: list, spec: {mode: parallel}}
    tool: {kind: playbook, path: tests/each, workload: {rows: "{{ iter.list }}"}}
"""
FAILING = """
metadata: {path: tests/failing}
workflow:
  - step: bad
    when: "{{ workload.nothing }}"
"""
RETRIED = """
metadata: {path: tests/retried}
workflow:
  - step: call
    tool:
      kind: playbook
      path: tests/failing
      eval:
        - expr: "{{ outcome.status == 'error' and outcome.playbook.status == 'FAILED' }}"
          do: retry
          attempts: 3
          delay: 0.001
"""


class Nested:
    """A planner fed by the log, a worker fed by the planner; `slots` are few."""

    def __init__(self, *texts: str, slots: int = 1) -> None:
        playbooks = [parse(HEAD + text) for text in texts]
        self.world = World(playbooks[0])
        self.world.playbooks.all = dict(enumerate(playbooks, start=7))
        self.topics = MemoryTopics()
        world = self.world
        children = Children(world.store, world.playbooks, world.payloads, world.clock)
        tool = PlaybookTool(children, Endings(world.store), world.payloads)
        ports = Ports(
            log=world.store,
            payloads=world.payloads,
            documents=Documents(world.payloads),
            playbooks=world.playbooks,
            tools={"noop": NoopTool(), "playbook": tool},
            clock=world.clock,
            dead_letters=NoDeadLetters(),
        )
        feed = MemoryFeed(self.topics, [TOPIC], group="work", idle_s=0.005)
        self.worker = Worker(feed, ports, Options(name="w/1", slots=slots))

    async def until(self, ends: Any) -> None:
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

    async def all_events(self) -> list[Event]:
        return list((await self.world.store.read_log(Frontier(), limit=10_000))[0])


@asynccontextmanager
async def nested(*texts: str, workload: Any = None, **options: Any) -> AsyncIterator[Nested]:
    made, stop = Nested(*texts, **options), asyncio.Event()
    await made.world.start(workload)
    running = asyncio.ensure_future(made.worker.run(stop))
    try:
        yield made
    finally:
        stop.set()
        await running


async def rows_of(made: Nested, step: str) -> list[Any]:
    documents = Documents(made.world.payloads)
    found = []
    for event in await made.all_events():
        if event.type == "frame.committed" and event.node_name == step:
            assert event.payload_ref is not None
            found += await documents.read(event.payload_ref)
    return sorted(found)


async def test_every_row_calls_a_child_with_one_slot_for_all() -> None:
    """A frame that waits gives up its slot, else its children would never run."""
    rows = list(range(20))
    async with nested(EACH, DOUBLE, workload={"rows": rows}) as made:
        plan = await made.result()
        assert plan.status == "COMPLETED"
        assert await rows_of(made, "each") == [row * 2 for row in rows]
        begun = [one for one in await made.all_events() if one.type == "playbook.initialized"]
        assert len(begun) == 1 + len(rows)
        assert made.topics.lag("work", TOPIC) == 0


async def test_children_have_children_with_one_slot_for_all() -> None:
    lists = [[1, 2, 3, 4], [5, 6], []]
    async with nested(OUTER, EACH, DOUBLE, workload={"lists": lists}) as made:
        plan = await made.result()
        assert plan.status == "COMPLETED"
        assert await rows_of(made, "each") == [2, 4, 6, 8, 10, 12]
        begun = [one for one in await made.all_events() if one.type == "playbook.initialized"]
        assert len(begun) == 1 + len(lists) + 6


async def test_rules_of_a_call_are_followed_and_each_try_has_its_child() -> None:
    async with nested(RETRIED, FAILING) as made:
        plan = await made.result()
        assert plan.status == "FAILED"
        assert "tests/failing" in (plan.error or "")
        assert "after 3 tries" in (plan.error or "")
        begun = [one for one in await made.all_events() if one.type == "playbook.initialized"]
        assert len(begun) == 1 + 3


async def test_a_cancelled_parent_ends_the_whole_family() -> None:
    held = DOUBLE.replace("- step: double", "- step: double\n    pool: elsewhere")
    workload = {"lists": [[1], [2]]}
    async with nested(OUTER, EACH, held, workload=workload) as made:
        store = made.world.store

        async def is_under_way() -> bool:
            return len(await store.open_roots("execution")) == 5

        async def is_over() -> bool:
            return not await store.open_roots("execution")

        await made.until(is_under_way)
        await made.world.append("execution.cancelled", status="CANCELLED", meta={"by": "someone"})
        await made.until(is_over)
        ends = [one for one in await made.all_events() if one.type == "execution.cancelled"]
        assert len(ends) == 5
