"""The queries of specification 002, on the log of executions that really ran."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.servers.runtime import Runtime, playbook

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

RECOVERY = """
    SELECT coalesce(max(current_index), -1) AS current_index,
      count(*) FILTER (WHERE event_type = 'command.completed') AS done,
      count(*) FILTER (WHERE event_type = 'command.failed') AS failed,
      max((meta->>'collection_size')::int) FILTER (WHERE event_type = 'loop.started') AS size
    FROM noetl.event_log WHERE execution_id = $1 AND node_name = 'each' AND meta->>'loop_id' = $2
"""
SHARDS = """
    SELECT max((meta->>'total_shards')::int) AS total,
      count(*) FILTER (WHERE event_type = 'loop.shard.enqueued') AS enqueued,
      count(*) FILTER (WHERE event_type = 'loop.shard.done') AS done,
      count(*) FILTER (WHERE event_type = 'loop.shard.failed') AS failed
    FROM noetl.event_log WHERE execution_id = $1 AND node_name = 'each' AND meta->>'loop_id' = $2
"""
ACTIONS = """
    SELECT node_name FROM noetl.event_log
    WHERE execution_id = $1 AND event_type = 'action_completed' ORDER BY seq
"""
CODE = """
def main(n):
    if n == 13:
        raise ValueError("unlucky")
    return n
"""


def each(mode: str) -> dict[str, Any]:
    """Return a playbook with a loop over 30 rows, of which one fails."""
    loop = {"in": "{{ range(30) | list }}", "iterator": "n", "spec": {"mode": mode}}
    step = {
        "step": "each",
        "loop": {**loop, "frame_policy": {"size": 10, "row_concurrency": 4}},
        "tool": {"kind": "python", "args": {"n": "{{ iter.n }}"}, "code": CODE},
        "on_error": "continue",
        "next": "end",
    }
    return playbook(step, {"step": "end", "tool": {"kind": "noop", "data": 1}})


@pytest.mark.parametrize("mode", ["parallel", "fanout"])
async def test_a_loop_can_be_recovered_and_counted_from_the_log(
    runtime: Runtime, mode: str
) -> None:
    ended = await runtime.run(each(mode))
    assert ended.status == "PARTIAL"
    (started,) = await runtime.events(ended.execution_id, "loop.started")
    log, loop_id = runtime.executions.connection, str(started.meta["loop_id"])
    found = await log.fetchrow(RECOVERY, ended.execution_id, loop_id)
    assert tuple(found) == (29, 29, 1, 30)
    assert [row[0] for row in await log.fetch(ACTIONS, ended.execution_id)] == ["each", "end"]
    if mode == "fanout":
        await runtime.until(
            "SELECT ended_at IS NOT NULL FROM noetl.stage WHERE execution_id = $1",
            ended.execution_id,
        )
        shards = await log.fetchrow(SHARDS, ended.execution_id, loop_id)
        assert tuple(shards) == (3, 3, 2, 1)
        (fan_in,) = await runtime.events(ended.execution_id, "loop.fanin.completed")
        assert fan_in.result == {
            "status": "partial",
            "context": {"done": 2, "failed": 1, "total": 3},
        }
