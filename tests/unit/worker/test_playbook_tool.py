from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from streams.clock import SettableClock
from streams.errors import Refused
from streams.events.model import Event, NewEvent, Root
from streams.holds import Holds
from streams.ids import derive_root_id
from streams.log.errors import LogUnavailable
from streams.log.memory import MemoryEventStore
from streams.log.port import Receipt
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import JSON, Scope
from streams.worker.attempt.children import Children
from streams.worker.await_executions import EndedExecutions
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.playbook import PlaybookTool
from tests.support.events.examples import PRODUCER, codec

SCOPE = Scope("acme", "care")
PARENT = 7 << 40
CALL = Call(
    tenant_id="acme",
    organization_id="care",
    execution_id=PARENT,
    step="each",
    task="call",
    entity_id=4001,
    attempt=1,
    partition="3.1",
)
CHILD: Config = {"path": "tests/child", "workload": {"n": 3}}


class Recording(MemoryEventStore):
    """Tells a test which roots were begun."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[int] = asyncio.Queue()
        super().__init__(
            codec=codec(), next_id=count(1).__next__, producer=PRODUCER, clock=SettableClock()
        )

    async def append(self, batch: Any) -> Receipt:
        receipt = await super().append(batch)
        for event in batch:
            if event.type == "playbook.initialized":
                self.begun.put_nowait(event.root.id)
        return receipt


class OnePath:
    def __init__(self) -> None:
        self.version = 2

    async def resolve(
        self, tenant_id: str, organization_id: str, path: str, version: int | None = None
    ) -> tuple[int, int]:
        if path != "tests/child":
            raise Refused(f"no playbook {path}")
        return 12, version or self.version


class Stage:
    """A tool on a log in memory; the test ends the children."""

    def __init__(self) -> None:
        self.log, self.payloads, self.paths = Recording(), MemoryPayloadStore(), OnePath()
        self.clock = SettableClock()
        self.children = Children(self.log, self.paths, self.payloads, self.clock)
        self.holds = Holds()
        ended = EndedExecutions(self.log, self.holds)
        self.tool = PlaybookTool(self.children, ended, self.payloads)

    def begin(self, config: Config = CHILD, call: Call = CALL) -> asyncio.Task[Outcome]:
        return asyncio.ensure_future(self.tool.run(config, call))

    async def append(self, root: int, type: str, *, key: str = "test", **fields: Any) -> None:
        event = NewEvent(
            type=type,
            root=Root("execution", root),
            tenant_id="acme",
            organization_id="care",
            idempotency_key=f"{type}/{key}",
            event_time=self.clock.now(),
            **fields,
        )
        await self.log.append([event])

    async def complete(self, child: int, data: Any, **fields: Any) -> None:
        result = {"status": "success", "data": data}
        await self.append(child, "playbook.completed", status="COMPLETED", result=result, **fields)

    async def events(self, root: int) -> list[Event]:
        return [one async for one in self.log.read_root(Root("execution", root))]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    await made.append(
        PARENT, "playbook.initialized", meta={"path": "tests/parent", "version": 1}, catalog_id=1
    )
    made.log.begun.get_nowait()
    yield made
    await made.tool.close()


async def run_to_end(stage: Stage, data: Any, **changes: Any) -> Outcome:
    running = stage.begin(**changes)
    await stage.complete(await stage.log.begun.get(), data)
    return await running


async def test_a_call_gets_what_the_child_returned(stage: Stage) -> None:
    running = stage.begin()
    child = await stage.log.begun.get()
    await stage.complete(child, {"sum": 3})
    outcome = await running
    assert (outcome.status, outcome.data) == ("success", {"sum": 3})
    assert outcome.meta == {"execution_id": str(child), "status": "COMPLETED"}
    first = (await stage.events(child))[0]
    assert first.parent_execution_id == PARENT
    assert first.context == {"workload": {"n": 3}}
    # The planner tells nobody: the worker sees the end by itself.
    assert first.meta == {"path": "tests/child", "version": 2, "parent_step": "each"}


async def test_a_second_attempt_finds_the_child_of_the_first(stage: Stage) -> None:
    first = stage.begin()
    child = await stage.log.begun.get()
    first.cancel()
    stage.paths.version = 9  # another version came meanwhile: what was begun stays
    second = stage.begin(call=replace(CALL, attempt=2))
    await stage.complete(child, "once")
    assert (await second).data == "once"
    assert stage.log.begun.empty()


async def test_a_child_that_ended_before_the_second_attempt_is_not_run_again(stage: Stage) -> None:
    await run_to_end(stage, "once")
    assert (await stage.tool.run(CHILD, replace(CALL, attempt=2))).data == "once"
    assert stage.log.begun.empty()


@pytest.mark.parametrize(
    ("config", "call"),
    [
        (CHILD, replace(CALL, tries=2)),
        (CHILD, replace(CALL, partition="4.1")),
        (CHILD, replace(CALL, task="other")),
        (CHILD, replace(CALL, entity_id=4002)),
        ({**CHILD, "workload": {"n": 4}}, CALL),
        ({**CHILD, "version": 1}, CALL),
    ],
)
async def test_another_call_has_a_child_of_its_own(
    stage: Stage, config: Config, call: Call
) -> None:
    await run_to_end(stage, "first")
    assert (await run_to_end(stage, "second", config=config, call=call)).data == "second"


async def test_an_id_that_somebody_has_is_passed_over(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def derived(cause: int, ordinal: int, purpose: str) -> int:
        return derive_root_id(cause, ordinal, "always the same")

    monkeypatch.setattr("streams.worker.attempt.children.derive_root_id", derived)
    await run_to_end(stage, "a")
    other = replace(CALL, partition="9.1")
    assert (await run_to_end(stage, "b", call=other)).data == "b"
    assert (await stage.tool.run(CHILD, CALL)).data == "a"
    assert (await stage.tool.run(CHILD, other)).data == "b"


async def test_a_child_that_failed_is_an_error_with_its_reason(stage: Stage) -> None:
    running = stage.begin()
    child = await stage.log.begun.get()
    meta = {"failed_step": "load", "failed_rows": 0}
    await stage.append(child, "playbook.failed", status="FAILED", error="no rows", meta=meta)
    outcome = await running
    assert outcome.error is not None
    assert outcome.error["kind"] == "playbook.failed"
    assert str(outcome.error["message"]).endswith("ended FAILED: no rows")
    assert outcome.detail == {"playbook": {"execution_id": str(child), "status": "FAILED"}}


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"path": "tests/none"}, "playbook.start"),
        ({}, "playbook.config"),
        ({"path": "tests/child", "version": "two"}, "playbook.config"),
        ({"path": "tests/child", "workload": 5}, "playbook.config"),
    ],
)
async def test_a_call_that_cannot_be_made_says_why(stage: Stage, config: Config, kind: str) -> None:
    error = (await stage.tool.run(config, CALL)).error
    assert error is not None
    assert error["kind"] == kind


async def test_a_caller_that_has_ended_takes_its_child_with_it(stage: Stage) -> None:
    running = stage.begin()
    child = await stage.log.begun.get()
    await stage.append(PARENT, "execution.cancelled", status="CANCELLED", meta={"by": "someone"})
    assert (await running).status == "error"
    last = (await stage.events(child))[-1]
    assert (last.type, last.status) == ("execution.cancelled", "CANCELLED")
    assert last.meta == {"by": f"execution/{PARENT}"}


async def test_a_child_that_takes_too_long_is_cancelled(stage: Stage) -> None:
    outcome = await stage.tool.run(CHILD, replace(CALL, timeout_s=0.01))
    assert outcome.error is not None
    assert outcome.error["kind"] == "playbook.timeout"
    assert (await stage.events(await stage.log.begun.get()))[-1].type == "execution.cancelled"


async def test_large_inputs_and_results_travel_as_payloads(stage: Stage) -> None:
    config = {**CHILD, "workload": {"text": "x" * 20_000}}
    running = stage.begin(config)
    child = await stage.log.begun.get()
    first = (await stage.events(child))[0]
    assert first.context is None
    assert first.payload_ref is not None
    ref = await stage.payloads.put(SCOPE, b'["y"]', media_type=JSON)
    await stage.complete(child, None, payload_ref=ref)
    assert (await running).data == ["y"]


async def test_inputs_that_json_lacks_are_given_as_text(stage: Stage) -> None:
    given = {"day": date(2026, 5, 16), "sum": Decimal("1.50")}
    running = stage.begin({**CHILD, "workload": given})
    child = await stage.log.begun.get()
    await stage.complete(child, 1)
    await running
    first = (await stage.events(child))[0]
    assert first.context == {"workload": {"day": "2026-05-16", "sum": "1.50"}}


async def test_a_call_stands_aside_while_it_waits(stage: Stage) -> None:
    places: list[str] = []

    @contextmanager
    def aside() -> Any:
        places.append("aside")
        yield
        places.append("back")

    running = stage.begin(call=replace(CALL, released_slot=aside))
    child = await stage.log.begun.get()
    while not places:  # noqa: ASYNC110 - it makes no sound
        await asyncio.sleep(0)
    assert places == ["aside"]
    await stage.complete(child, 1)
    await running
    assert places == ["aside", "back"]


async def test_one_question_asks_for_all_that_are_waited_for(stage: Stage) -> None:
    asked: list[int] = []
    ask = stage.log.endings

    async def endings(ids: Any) -> Any:
        asked.append(len(ids))
        return await ask(ids)

    stage.log.endings = endings  # type: ignore[method-assign]
    calls = [replace(CALL, partition=f"{row}.1") for row in range(100)]
    running = [stage.begin(call=call) for call in calls]
    children = [await stage.log.begun.get() for _ in calls]
    async with asyncio.timeout(30):
        while not asked or asked[-1] <= len(calls):  # noqa: ASYNC110 - it makes no sound
            await asyncio.sleep(0.005)
    for child in children:
        await stage.complete(child, child)
    assert {(await one).data for one in running} == set(children)


async def test_a_log_that_is_away_while_a_child_is_awaited_is_a_hold(stage: Stage) -> None:
    ask = stage.log.endings

    async def away(ids: Any) -> Any:
        raise LogUnavailable("paused")

    stage.log.endings = away  # type: ignore[method-assign]
    running = stage.begin()
    child = await stage.log.begun.get()
    async with asyncio.timeout(30):
        while not stage.holds.away:  # noqa: ASYNC110 - it makes no sound
            await asyncio.sleep(0.005)
    stage.log.endings = ask  # type: ignore[method-assign]
    await stage.complete(child, 7)

    assert (await running).data == 7
    assert not stage.holds.away
