"""Playbooks that call playbooks: planner and worker together on a log in memory."""

from __future__ import annotations

from tests.support.planner.with_worker import TOPIC, whole

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


async def test_every_row_calls_a_child_with_one_slot_for_all() -> None:
    """A frame that waits gives up its slot, else its children would never run."""
    rows = list(range(20))
    async with whole(EACH, DOUBLE, workload={"rows": rows}) as made:
        plan = await made.result()
        assert plan.status == "COMPLETED"
        assert sorted(await made.rows("each")) == [row * 2 for row in rows]
        begun = await made.events("playbook.initialized")
        assert len(begun) == 1 + len(rows)
        assert made.topics.lag("work", TOPIC) == 0


async def test_children_have_children_with_one_slot_for_all() -> None:
    lists = [[1, 2, 3, 4], [5, 6], []]
    async with whole(OUTER, EACH, DOUBLE, workload={"lists": lists}) as made:
        plan = await made.result()
        assert plan.status == "COMPLETED"
        assert sorted(await made.rows("each")) == [2, 4, 6, 8, 10, 12]
        begun = await made.events("playbook.initialized")
        assert len(begun) == 1 + len(lists) + 6


async def test_rules_of_a_call_are_followed_and_each_try_has_its_child() -> None:
    async with whole(RETRIED, FAILING) as made:
        plan = await made.result()
        assert plan.status == "FAILED"
        assert "tests/failing" in (plan.error or "")
        assert "after 3 tries" in (plan.error or "")
        begun = await made.events("playbook.initialized")
        assert len(begun) == 1 + 3


async def test_a_cancelled_parent_ends_the_whole_family() -> None:
    held = DOUBLE.replace("- step: double", "- step: double\n    pool: elsewhere")
    workload = {"lists": [[1], [2]]}
    async with whole(OUTER, EACH, held, workload=workload) as made:
        store = made.world.store

        async def is_under_way() -> bool:
            return len(await store.open_roots("execution")) == 5

        async def is_over() -> bool:
            return not await store.open_roots("execution")

        await made.until(is_under_way)
        await made.world.append("execution.cancelled", status="CANCELLED", meta={"by": "someone"})
        await made.until(is_over)
        ends = await made.events("execution.cancelled")
        assert len(ends) == 5


MISSING = """
metadata: {path: tests/missing}
workflow:
  - step: call
    tool:
      kind: playbook
      path: tests/nowhere
      eval:
        - expr: "{{ outcome.playbook.status == 'FAILED' }}"
          do: retry
        - expr: "{{ outcome.status == 'error' }}"
          do: fail
"""


async def test_rules_can_ask_about_a_child_that_never_began() -> None:
    async with whole(MISSING) as made:
        plan = await made.result()
        assert plan.status == "FAILED"
        assert "playbook.start" in (plan.error or "")
        assert "tests/nowhere" in (plan.error or "")
