"""Forks: a new execution from a past state; the source stays as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from streams.collector.core import digests_in
from streams.events.model import Event, Root
from streams.execution.plan import Plan
from streams.payload.port import Scope
from streams.replay.cutoff import Cutoff
from streams.replay.errors import BadCutoff, NoSuchExecution, TamperedLog
from streams.replay.fork.errors import BadOverride, NothingToFork
from streams.replay.fork.events import PART_BYTES
from streams.replay.fork.fork_json import fork_json
from streams.replay.fork.forks import Forks, PreparedFork
from streams.replay.memory import MemoryStoredLog
from streams.replay.state import Replay
from streams.replay.verified import VerifiedLog
from tests.support.events.examples import codec
from tests.support.planner.with_worker import Whole
from tests.support.worker.memory import FakeTool, http_error, ok
from tests.support.worker.running import run_worker

SCOPE = Scope("acme", "care")
FAILING = """
metadata: {path: tests/failing}
workload: {bad: true, deep: {limit: 1}}
workflow:
  - step: first
    tool: {kind: http, method: POST, url: "{{ workload.deep.limit }}"}
    set: {kept: "{{ first.data }}", n: 1}
    next: [{step: second, args: {limit: "{{ workload.deep.limit }}"}}]
  - step: second
    tool: {kind: http, method: POST, fail: "{{ workload.bad }}", limit: "{{ args.limit }}"}
    next: [{step: last}]
  - step: last
    tool: {kind: noop, data: {kept: "{{ ctx.kept | length }}", n: "{{ ctx.n }}"}}
return: "{{ last.data }}"
"""
ORDERED = """
metadata: {path: tests/ordered}
workflow:
  - step: each
    loop: {in: [1, 2, 3], spec: {mode: sequential}, frame_policy: {size: 1}}
    tool:
      - a:
          kind: http
          method: POST
          n: "{{ iter.item }}"
          eval:
            - else:
                do: continue
                set_ctx: {sum: "{{ (ctx.sum | default(0)) + iter.item }}"}
return: "{{ ctx.sum }}"
"""
MANY = """
metadata: {path: tests/many}
workflow:
""" + "".join(
    f"  - {{step: s{n}, tool: {{kind: http}}, next: [{{step: s{n + 1}}}]}}\n" for n in range(8)
)
MANY += (
    '  - {step: s8, tool: {kind: noop, data: "{{ s0.data | length }}"}}\nreturn: "{{ s8.data }}"\n'
)


class Bench(Whole):
    """A source that has ended, and forks of it."""

    def __init__(self, text: str, **tools: Any) -> None:
        super().__init__(text, **tools)
        self.stored = MemoryStoredLog()
        world = self.world
        world.store._mirror = self.stored.mirror
        self.source_id = world.execution_id
        self.log = VerifiedLog(self.stored, codec())
        self.forks = Forks(self.stored, self.log, world.playbooks, world.payloads, world.clock)

    async def seq_of(self, type: str, step: str | None = None) -> int:
        events = await self.world.events(self.source_id)
        return next(e.seq for e in events if e.type == type and step in (None, e.node_name))

    async def prepare(self, at: int, **values: Any) -> PreparedFork:
        return await self.forks.prepare(self.source_id, SCOPE, at, values)

    async def started(self, fork: PreparedFork) -> Plan:
        """Start a fork and run it to its end."""
        self.world.execution_id = self.source_id + 4096
        await self.forks.start(fork, self.world.execution_id, by="ana", into=self.world.store)
        return await self.result()


@asynccontextmanager
async def bench(
    text: str, answer: Callable[[Mapping[str, Any], Any], Any], **meta: Any
) -> AsyncIterator[Bench]:
    made, stop = Bench(text, http=FakeTool(answer)), asyncio.Event()
    await made.world.start(None, **meta)
    running = asyncio.ensure_future(run_worker(made.worker, made.feed, stop))
    try:
        await made.result()
        yield made
    finally:
        stop.set()
        await running


def fails_if_bad(config: Mapping[str, Any], call: Any) -> Any:
    return http_error(500) if config.get("fail") else ok("x" * 100)


async def test_a_fork_at_the_failed_step_with_a_corrected_value_completes() -> None:
    async with bench(FAILING, fails_if_bad) as made:
        source = await made.world.plan()
        assert source.status == "FAILED"
        head = await made.stored.head(source.root)
        failed_at = await made.seq_of("playbook.failed")

        found = await made.prepare(failed_at, bad=False)
        assert [one.step for one in found.state.point.entered_again] == ["second"]
        ended = await made.started(found)

        assert (ended.status, (ended.result or {})["data"]) == ("COMPLETED", {"kept": 100, "n": 1})
        assert await made.stored.head(source.root) == head
        commands = [e for e in await made.world.events() if e.type == "command.issued"]
        assert [event.node_name for event in commands] == ["second", "last"]


async def test_the_forked_event_has_where_it_comes_from_and_its_checksum_is_the_replayed() -> None:
    async with bench(FAILING, fails_if_bad) as made:
        found = await made.prepare(await made.seq_of("playbook.failed"), bad=False)
        await made.started(found)
        (forked,) = [e for e in await made.world.events() if e.type == "execution.forked"]
        position = await made.seq_of("step.exit", "second") - 1
        replay = Replay(made.stored, made.log, made.world.clock)
        state = await replay.state(made.source_id, SCOPE, Cutoff(seq=position))
        assert forked.meta["source_position"] == position
        assert forked.meta["source_execution_id"] == str(made.source_id)
        assert forked.meta["source_chain"] == state.as_of.chain
        assert forked.meta["state_checksum"] == state.checksum_of("all")
        assert fork_json(found, None)["overrides"] == {"bad": False}


async def test_the_effects_that_the_source_began_after_the_position_are_listed() -> None:
    async with bench(FAILING, fails_if_bad) as made:
        early = await made.prepare(1, bad=False)
        late = await made.prepare(await made.seq_of("playbook.failed"), bad=False)
        assert [(one.step, one.kind, one.commands) for one in early.effects] == [
            ("first", "http", 1),
            ("second", "http", 1),
        ]
        assert [one.step for one in late.effects] == ["second"]


async def test_every_position_of_a_failed_execution_can_be_forked_to_its_end() -> None:
    async with bench(FAILING, fails_if_bad) as made:
        length = len(await made.world.events())
        found = [await made.prepare(at, bad=False) for at in range(1, length + 1)]
        wanted = {"kept": 100, "n": 1}
        for number, fork in enumerate(found, 1):
            made.world.execution_id = made.source_id + 4096 * number
            start = made.forks.start
            await start(fork, made.world.execution_id, by="ana", into=made.world.store)
            ended = await made.result()
            assert (ended.status, (ended.result or {}).get("data")) == ("COMPLETED", wanted), number


async def test_an_open_loop_starts_over_without_what_it_had_set() -> None:
    async with bench(ORDERED, lambda *_: ok("x")) as made:
        commits = [e.seq for e in await made.world.events() if e.type == "frame.committed"]
        assert len(commits) == 3
        found = await made.prepare(commits[1])
        assert found.state.ctx == {}
        assert [(one.frames, one.rows) for one in found.effects] == [(3, 3)]
        ended = await made.started(found)
        assert (ended.result or {})["data"] == 6


async def test_values_are_set_in_the_workload_and_in_ctx() -> None:
    async with bench(FAILING, fails_if_bad) as made:
        at = await made.seq_of("playbook.failed")
        found = await made.prepare(at, **{"bad": False, "deep.limit": 7, "ctx.n": 5})
        assert found.state.workload == {"bad": False, "deep": {"limit": 7}}
        ended = await made.started(found)
        assert (ended.result or {})["data"] == {"kept": 100, "n": 5}


async def test_the_events_of_a_fork_name_the_payloads_that_it_shares() -> None:
    def large(config: Mapping[str, Any], call: Any) -> Any:
        return http_error(500) if config.get("fail") else ok("x" * 200_000)

    async with bench(FAILING, large) as made:
        found = await made.prepare(await made.seq_of("playbook.failed"), bad=False)
        ended = await made.started(found)
        assert (ended.result or {})["data"] == {"kept": 200_000, "n": 1}
        forked = [e for e in await made.world.events() if e.type == "execution.forked"]
        named = digests_in(orjson.dumps([event.context for event in forked]))
        result = found.state.point.results["first"].data_payload(SCOPE)
        assert result is not None
        assert result.sha256 in named
        assert {group["sha256"] for group in found.state.ctx_elsewhere} <= named
        assert found.state.ctx_elsewhere


async def test_a_fork_of_a_child_has_no_parent_and_sends_no_reply() -> None:
    meta = {"parent_step": "call", "parent_command_id": "77", "reply_to": "answers"}
    async with bench(FAILING, fails_if_bad, **meta) as made:
        found = await made.prepare(await made.seq_of("playbook.failed"), bad=False)
        assert found.state.point.plan.parent_command_id == 77
        replies = len(made.world.replies.sent)
        ended = await made.started(found)
        assert ended.status == "COMPLETED"
        assert (ended.parent_command_id, ended.parent_execution_id) == (None, None)
        assert ended.reply_to is None
        assert len(made.world.replies.sent) == replies


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"worse": 1}, "workload 'worse': there is no 'worse'; there is bad, deep"),
        ({"deep.other": 1}, "there is no 'other'; there is limit"),
        ({"ctx.m": 1}, "ctx 'm': there is no 'm'; there is kept, n"),
        ({"bad": "x" * 40_000}, "the values to set have"),
    ],
)
async def test_values_that_do_not_exist_are_refused(values: dict[str, Any], what: str) -> None:
    async with bench(FAILING, fails_if_bad) as made:
        with pytest.raises(BadOverride, match=what):
            await made.prepare(await made.seq_of("playbook.failed"), **values)


async def test_positions_that_cannot_be_forked_are_refused() -> None:
    async with bench(ORDERED, lambda *_: ok("x")) as made:
        length = len(await made.world.events())
        for at in (0, length + 1):
            with pytest.raises(BadCutoff, match=f"has the places 1 to {length}"):
                await made.prepare(at)
        with pytest.raises(NothingToFork, match="had completed at event"):
            await made.prepare(length)
        with pytest.raises(NoSuchExecution):
            await made.forks.prepare(made.source_id, Scope("other", "care"), 1, {})


async def test_a_tampered_source_is_not_forked() -> None:
    async with bench(ORDERED, lambda *_: ok("x")) as made:
        events = made.stored.stored[Root("execution", made.source_id)]
        events[2] = events[2]._replace(envelope=events[3].envelope)
        with pytest.raises(TamperedLog) as raised:
            await made.prepare(2)
        assert raised.value.seq == 3


async def test_preparing_a_fork_and_starting_it_again_append_nothing() -> None:
    async with bench(FAILING, fails_if_bad) as made:
        before = dict.fromkeys(made.stored.stored)
        found = await made.prepare(await made.seq_of("playbook.failed"), bad=False)
        assert dict.fromkeys(made.stored.stored) == before
        ended = await made.started(found)
        length = len(await made.world.events())
        await made.forks.start(found, ended.execution_id, by="ana", into=made.world.store)
        assert len(await made.world.events()) == length


async def test_nothing_is_decided_before_the_last_part_of_a_large_state() -> None:
    async with bench(MANY, lambda *_: ok("x" * 20_000)) as made:
        found = await made.prepare(await made.seq_of("step.enter", "s8"))
        ended = await made.started(found)
        events = await made.world.events()
        parts = [e for e in events if e.type == "execution.forked"]
        assert len(parts) == events[0].meta["fork_parts"] > 1
        assert [event.seq for event in parts] == list(range(2, len(parts) + 2))
        assert all(len(str(event.context)) < 2 * PART_BYTES for event in parts)
        assert (ended.result or {})["data"] == 20_000
        await _absorbed_one_by_one(made, events)


async def _absorbed_one_by_one(made: Bench, events: list[Event]) -> None:
    """A planner that gets only the first events decides nothing, and appends nothing."""
    length = len(events)
    planner = made.world.new_planner()
    for event in events[: int(events[0].meta["fork_parts"])]:
        await planner.absorb([event])
    assert len(await made.world.events()) == length
