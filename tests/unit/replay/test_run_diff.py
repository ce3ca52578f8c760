"""Two executions of one playbook: equal whatever differs between runs, else the first step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import Scope
from streams.replay.diff_json import run_diff_json
from streams.replay.memory import MemoryStoredLog
from streams.replay.run_diff import OtherPlaybook, PayloadRows, RunComparison, RunDiff
from streams.replay.verified import VerifiedLog
from tests.support.events.examples import codec
from tests.support.planner.with_worker import Whole
from tests.support.projector.executions import Story, memory_log
from tests.support.worker.memory import FakeTool, http_error, ok
from tests.support.worker.running import run_worker

PLAYBOOK = """
metadata: {{path: tests/{name}}}
workload: {{rows: [1, 2, 3, 4, 5, 6, 7]}}
workflow:
  - step: first
    tool: {{kind: http, n: 0}}
    set: {{seen: "{{{{ first.data }}}}"}}
    next: [{{step: each, args: {{limit: 1}}}}]
  - step: each
    loop:
      in: "{{{{ workload.rows }}}}"
      iterator: n
      spec: {{mode: parallel, max_in_flight: 3}}
      frame_policy: {{size: {size}}}
    tool: {{kind: http, n: "{{{{ iter.n }}}}"}}
    next: [{{step: last}}]
  - step: last
    tool: {{kind: noop, data: "{{{{ each.data | sum }}}}"}}
return: "{{{{ last.data }}}}"
"""
Answer = Callable[[Mapping[str, Any], Any], Any]


def doubled(config: Mapping[str, Any], call: Any) -> Any:
    return ok(2 * config["n"])


def one_other(config: Mapping[str, Any], call: Any) -> Any:
    return ok(99 if config["n"] == 4 else 2 * config["n"])


def one_fails(config: Mapping[str, Any], call: Any) -> Any:
    return http_error(500) if config["n"] == 4 else ok(2 * config["n"])


class Runs:
    """Runs executions one after the other; their logs and payloads are shared."""

    def __init__(self) -> None:
        self.stored, self.payloads = MemoryStoredLog(), MemoryPayloadStore()
        rows = PayloadRows(self.payloads)
        self.comparison = RunComparison(self.stored, VerifiedLog(self.stored, codec()), rows)

    async def run(
        self, name: str, size: int, answer: Answer, *, slots: int = 1, workload: Any = None
    ) -> int:
        made = Whole(PLAYBOOK.format(name=name, size=size), http=FakeTool(answer), slots=slots)
        made.world.store._mirror = self.stored.mirror
        made.world.execution_id += 4096 * len(self.stored.stored)
        made.world.clock.advance(7200 * len(self.stored.stored))
        stop = asyncio.Event()
        await made.world.start(workload)
        running = asyncio.ensure_future(run_worker(made.worker, made.feed, stop))
        try:
            await made.result()
        finally:
            stop.set()
            await running
        self.payloads.objects.update(made.world.payloads.objects)
        return made.world.execution_id


async def diff(
    answer: Answer, *, size: int = 2, name: str = "same", workload: Any = None
) -> RunDiff:
    """Compare a run with a second one: later, by more slots, perhaps in other frames."""
    runs = Runs()
    a = await runs.run("same", 2, doubled)
    b = await runs.run("same", size, answer, slots=3, workload=workload)
    return await runs.comparison.between(a, b, Scope("acme", "care"))


@pytest.mark.parametrize("size", [2, 3])
async def test_two_runs_with_the_same_inputs_are_equal_whatever_their_frames(size: int) -> None:
    found = await diff(doubled, size=size)
    assert found.first_difference is None
    assert [one.name for one in found.steps] == ["first", "each", "last", "(execution)"]
    each = found.steps[1]
    assert each.a == each.b
    assert each.a is not None
    assert each.a.rows == 7
    assert all(one.a is not None and one.a.result for one in found.steps)
    assert run_diff_json(found)["equal"] is True


async def test_the_first_step_with_another_result_is_named() -> None:
    found = await diff(one_other)
    first = found.first_difference
    assert first is not None
    assert (first.name, first.differs_in) == ("each", ("result",))
    assert run_diff_json(found)["first_difference"] == "each"


async def test_a_run_with_other_inputs_differs_in_its_rows() -> None:
    first = (await diff(doubled, workload={"rows": [1, 2, 3]})).first_difference
    assert first is not None
    assert (first.name, first.differs_in) == ("each", ("rows", "result"))


async def test_a_failed_row_is_a_difference_and_a_step_that_was_not_entered_is_one() -> None:
    found = await diff(one_fails)
    first = found.first_difference
    assert first is not None
    assert first.name == "each"
    assert {"status", "error", "failed_rows"} <= set(first.differs_in)
    assert found.steps[2].differs_in == ("entered",)
    assert "status" in found.steps[-1].differs_in


async def test_executions_of_different_playbooks_are_refused() -> None:
    runs = Runs()
    a = await runs.run("same", 2, doubled)
    log = memory_log(runs.stored.mirror)
    await log.append([Story(7).began()])
    with pytest.raises(OtherPlaybook, match="7 of examples/load; compare two of one playbook"):
        await runs.comparison.between(a, 7, Scope("acme", "care"))
