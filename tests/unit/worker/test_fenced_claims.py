"""Claims of NoETL's spelling: their frames end early, are continued, and may be one call."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streams.execution.plan import COMPLETED
from streams.worker.port import Call, Config, Outcome
from tests.support.planner.with_worker import whole
from tests.support.worker.memory import FakeTool, ok

TEXT = """metadata: {name: p, path: p}
workflow:
  - step: load
    loop:
      cursor: {kind: postgres, auth: pg, claim: "CLAIM {{ __frame_max_rows }}"}
      iterator: job
      spec: {mode: cursor, frame: FRAME}
    tool:
      - {name: work, kind: python, code: result = 1, input: INPUT}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop, result: "{{ load.stats }}"}
"""
ROW = '{n: "{{ iter.job.n }}", at: "{{ iter._index }}"}'


class Queue(FakeTool):
    """A database whose claims are fenced: a frame gets the same rows again."""

    def __init__(self, count: int, size: int) -> None:
        super().__init__(self.claim)
        self.free, self.size = list(range(count)), size
        self.fences: dict[int, list[Any]] = {}
        self.claims = 0

    def claim(self, config: Config, call: Call) -> Outcome:
        assert config["fence"] is True
        if call.entity_id not in self.fences:
            self.claims += 1
            taken, self.free = self.free[: self.size], self.free[self.size :]
            self.fences[call.entity_id] = [{"n": n} for n in taken]
        rows = self.fences[call.entity_id]
        return ok({"rows": rows, "row_count": len(rows)})


async def run(frame: str, queue: Queue, *, given: str = ROW, size: int = 10) -> Any:
    """Run the loop; each row takes a second and gives a value of `size` characters."""
    text = TEXT.replace("FRAME", frame).replace("INPUT", given)
    python = FakeTool()
    async with whole(text, postgres=queue, python=python) as made:

        def work(config: Config, call: Call) -> Outcome:
            made.world.clock.advance(1.0)
            return ok("x" * size)

        python._answer = work
        plan = await made.result()
        frames = await made.events("frame.committed")
    assert plan.status == COMPLETED, plan.error
    return plan, frames, [config["input"] for config, _ in python.calls]


LIMITS = [
    ("{max_rows: 4, max_seconds: 2}", 10),
    ('{max_rows: 4, max_seconds: "2"}', 10),
    ("{max_rows: 4, max_bytes: 1500}", 1000),
]


@pytest.mark.parametrize(("frame", "size"), LIMITS)
async def test_a_frame_ends_at_its_limit_and_another_runs_the_rows_it_claimed(
    frame: str, size: int
) -> None:
    queue = Queue(8, 4)
    plan, frames, given = await run(frame, queue, size=size)
    counts = [one.meta["rows"] for one in frames]
    assert Counter(counts) == {2: 4, 0: 1}, "two frames of two rows for each claim, one empty"
    assert queue.claims == 3
    assert sorted(one["n"] for one in given) == list(range(8))
    assert plan.result["data"] == {"total": 8, "success": 8, "failed": 0}


async def test_rows_are_numbered_over_all_frames() -> None:
    _, _, given = await run("{max_rows: 4, max_seconds: 2}", Queue(8, 4))
    numbers = [one["at"] for one in given]
    assert len(set(numbers)) == 8
    assert sorted(numbers)[:4] == [0, 1, 2, 3]


async def test_a_frame_without_limits_runs_all_that_it_claimed() -> None:
    _, frames, _ = await run("{max_rows: 4}", Queue(8, 4))
    assert [one.meta["rows"] for one in frames] == [4, 4, 0]


async def test_the_tasks_run_once_for_a_whole_frame() -> None:
    given = '{rows: "{{ frame.rows }}", job: "{{ iter.job }}", first: "{{ job[0].n }}"}'
    frame = "{max_rows: 3, process: frame}"
    plan, _, found = await run(frame, Queue(5, 3), given=given)
    rows = [[{"n": 0}, {"n": 1}, {"n": 2}], [{"n": 3}, {"n": 4}]]
    assert found == [{"rows": some, "job": some, "first": some[0]["n"]} for some in rows]
    assert plan.result["data"] == {"total": 2, "success": 2, "failed": 0}
