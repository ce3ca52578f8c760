"""The bench of many open executions: all of them wait, are stored, and are taken over."""

from __future__ import annotations

import pytest

from streams.dev.bench.many import ManyBench
from tests.support.servers.runtime import Runtime

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
EXECUTIONS = 50
LEFT = """
SELECT count(*) FROM noetl.trigger_key k JOIN noetl.root_head h ON h.root_id = k.execution_id
WHERE starts_with(k.trigger_key, 'bench-many-') AND NOT h.terminal"""


async def test_all_waiting_executions_are_open_and_stored_and_taken_over_twice(
    own_runtime: Runtime,
) -> None:
    """On the run's own runtime: its planner is killed, once with its tables deleted."""
    runtime = own_runtime
    restarts = runtime.part("planner-0").restarts

    bench = ManyBench(runtime.settings, runtime.data, triggers=3, cancel=True, say=print)
    report = await bench.measure(EXECUTIONS)

    assert report.faults == ()
    figures = report.figures
    assert figures["executions"] == figures["open"] == figures["stored"] == EXECUTIONS
    assert runtime.part("planner-0").restarts == restarts + 2
    await runtime.until(f"SELECT ({LEFT}) = 0")
