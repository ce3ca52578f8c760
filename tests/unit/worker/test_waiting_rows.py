"""Rows that wait for a retry or a rate leave their lane, and their frame its slot."""

from __future__ import annotations

import asyncio

from streams.worker.port import Call, Config, Outcome
from tests.support.planner.with_worker import whole

RETRYING = """
metadata: {{name: t, path: t/t}}
workload: {{rows: [0, 1, 2, 3, 4, 5]}}
workflow:
  - step: each
    loop:
      in: "{{{{ workload.rows }}}}"
      iterator: row
      spec: {{mode: {mode}}}
      frame_policy: {{size: 10, row_concurrency: {width}}}
    tool:
      kind: noop
      row: "{{{{ iter.row }}}}"
      eval:
        - expr: "{{{{ outcome.status == 'error' }}}}"
          do: retry
          attempts: 3
          delay: 0.3
"""
RATED = """
metadata: {name: t, path: t/t}
workload: {rows: [0, 1, 2, 3, 4, 5]}
workflow:
  - step: each
    loop:
      in: "{{ workload.rows }}"
      iterator: row
      spec: {mode: parallel}
      frame_policy: {size: 10, row_concurrency: 3}
    tool:
      kind: noop
      row: "{{ iter.row }}"
      spec: {rate: {per_second: "{{ 5 * 2 }}", key: "{{ workload.rows | length }}"}}
"""
TWO_STEPS = """
metadata: {name: t, path: t/t}
workflow:
  - step: start
    next:
      spec: {mode: inclusive}
      arcs: [{step: slow}, {step: quick}]
  - step: slow
    tool:
      kind: noop
      row: 0
      eval:
        - expr: "{{ outcome.status == 'error' }}"
          do: retry
          delay: 0.5
  - step: quick
    tool: {kind: noop, row: 1}
"""


class FailsFirst:
    """A tool whose first call for rows 0 and 1 fails; records its calls in order."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.times: list[float] = []
        self.at_once = self.most_at_once = 0

    async def run(self, config: Config, call: Call) -> Outcome:
        row = int(str(config["row"]))
        self.calls.append(row)
        self.times.append(asyncio.get_running_loop().time())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        if call.tries == 1 and row < 2 and call.step != "quick":
            return Outcome(status="error", error={"kind": "busy", "message": "later"})
        return Outcome(status="success", data=row)

    async def close(self) -> None:
        """Do nothing."""


async def test_other_rows_run_while_some_wait_for_a_retry() -> None:
    tool = FailsFirst()
    async with whole(RETRYING.format(mode="parallel", width=2), noop=tool) as made:
        plan = await made.result()
    assert plan.status == "COMPLETED"
    assert tool.calls == [0, 1, 2, 3, 4, 5, 0, 1]
    assert tool.most_at_once == 2, "never more than the frame's concurrency"


async def test_rows_in_order_wait_for_the_retry_of_the_one_before() -> None:
    tool = FailsFirst()
    async with whole(RETRYING.format(mode="sequential", width=4), noop=tool) as made:
        assert (await made.result()).status == "COMPLETED"
    assert tool.calls == [0, 0, 1, 1, 2, 3, 4, 5]


async def test_a_command_that_waits_for_a_retry_leaves_its_slot() -> None:
    tool = FailsFirst()
    async with whole(TWO_STEPS, noop=tool, slots=1) as made:
        assert (await made.result()).status == "COMPLETED"
    assert tool.calls == [0, 1, 0]


async def test_calls_of_a_task_keep_its_rate() -> None:
    tool = FailsFirst()
    async with whole(RATED, noop=tool) as made:
        await made.result()
    assert len(tool.times) == 6
    # At 10 a second the first call is made at once, and the sixth half a second later.
    assert tool.times[-1] - tool.times[0] >= 0.5
