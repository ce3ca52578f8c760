"""Benchmark of trivial frames per second through planner, worker and log.

One execution has a list loop with frames of one row that do nothing, with 64 in flight. The
rate counts from the first dispatch to the last commit. CPU time is that of each service of the
embedded stack over the same execution, its start and end included.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streams.dev.bench.executions import open_executions
from streams.dev.bench.log_counts import count
from streams.dev.bench.playbook_setup import register
from streams.dev.bench.report import BenchReport, Figure, per_second
from streams.dev.bench.resource_usage import ResourceUsage
from streams.settings import Settings

PATH = "bench/trivial-frames"
WINDOW = 64
WARM_UP = 10_000
"""Warm-up frames: the servers' Java is slow until it is compiled."""
PLAYBOOK = f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: trivial-frames, path: {PATH}}}
workload: {{rows: []}}
workflow:
  - step: start
    loop:
      in: "{{{{ workload.rows }}}}"
      iterator: row
      spec: {{mode: parallel, max_in_flight: {WINDOW}}}
      frame_policy: {{size: 1, parallelism: {WINDOW}}}
    tool:
      - nothing: {{kind: noop}}
"""
SPAN = """
SELECT extract(epoch FROM
         max(ingest_time) FILTER (WHERE event_type = 'frame.committed')
         - min(ingest_time) FILTER (WHERE event_type = 'frame.dispatched'))::float8 AS seconds,
       count(*) FILTER (WHERE event_type LIKE 'frame.%') AS events
FROM noetl.event WHERE root_id = $1"""

Say = Callable[[str], None]


async def bench_frames(settings: Settings, folder: Path, *, frames: int, say: Say) -> BenchReport:
    """Run a warm-up loop, then a loop of `frames` frames."""
    await register(settings, PLAYBOOK)
    watch = ResourceUsage(folder)
    async with open_executions(settings) as executions:
        await executions.run(PATH, {"rows": list(range(min(WARM_UP, 4 * frames)))})
        say("warmed up")
        before = watch.cpu_s()
        ended = await executions.run(PATH, {"rows": list(range(frames))})
        after = watch.cpu_s()
        found = await count(executions.connection, ended.execution_id)
        span = await executions.connection.fetchrow(SPAN, ended.execution_id)
    assert span is not None
    used = {name: 1000 * (after[name] - before.get(name, 0.0)) for name in after}
    figures: dict[str, Figure] = {
        "frames": found.commits,
        "window": WINDOW,
        "frames_per_s": per_second(found.commits, span["seconds"] or 1.0),
        "events_per_s": per_second(span["events"], span["seconds"] or 1.0),
        "events_per_frame": round(found.frame_events / max(1, found.frames), 2),
        "cpu_ms_per_frame": {
            name: round(value / max(1, found.commits), 3) for name, value in used.items()
        },
        "wall_s": round(ended.wall_s, 2),
        "status": ended.status,
    }
    faults = [f"{frames} frames expected, {found.commits} committed"] * (found.commits != frames)
    if ended.status != "COMPLETED":
        faults.append(f"the execution ended {ended.status}: {ended.error}")
    return BenchReport(figures, tuple(faults))
