"""Benchmark of a rate that holds over all workers: requests a second at one host.

Several executions with their own playbooks call one host under one key of `spec.rate`. The host
counts the requests in each second after the first five.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from uuid import uuid4

from aiohttp import web

from streams.dev.bench.executions import ExecutionEnd, open_executions
from streams.dev.bench.playbook_setup import register
from streams.dev.bench.report import BenchReport, Figure
from streams.settings import Settings

WARM_UP_S, COOL_DOWN_S = 5, 5
LEAST = 0.95
"""The part of the rate that every second must reach."""
PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: rate-{number}, path: bench/rate-{number}}}
workload: {{rows: [], url: "", key: "", per_second: 1}}
workflow:
  - step: start
    loop:
      in: "{{{{ workload.rows }}}}"
      iterator: row
      spec: {{mode: parallel, max_in_flight: 8}}
      frame_policy: {{size: 50, parallelism: 4, row_concurrency: 16}}
    tool:
      - ask:
          kind: http
          url: "{{{{ workload.url }}}}"
          spec:
            rate: {{per_second: "{{{{ workload.per_second }}}}", key: "{{{{ workload.key }}}}"}}
"""
Say = Callable[[str], None]


async def bench_rate(
    settings: Settings, *, per_second: int, seconds: int, playbooks: int, say: Say
) -> BenchReport:
    """Run the executions and count their requests."""
    paths = [f"bench/rate-{number}" for number in range(playbooks)]
    for number in range(playbooks):
        await register(settings, PLAYBOOK.format(number=number))
    rows = per_second * (WARM_UP_S + seconds + COOL_DOWN_S) // playbooks
    async with _counting_host() as (url, times), open_executions(settings) as executions:
        workload = {"url": url, "key": uuid4().hex, "per_second": per_second}
        say(f"{playbooks} executions of {rows} requests each")
        keys = [
            await executions.publish(path, {**workload, "rows": list(range(rows))})
            for path in paths
        ]
        ends = [await executions.end(key) for key in keys]
    return _report(sorted(times), ends, per_second=per_second, seconds=seconds)


def _report(
    times: Sequence[float], ends: Sequence[ExecutionEnd], *, per_second: int, seconds: int
) -> BenchReport:
    counts = counted(times, WARM_UP_S, seconds)
    figures: dict[str, Figure] = {
        "requests": len(times),
        "seconds": len(counts),
        "least_per_s": min(counts, default=0),
        "most_per_s": max(counts, default=0),
        "mean_per_s": round(sum(counts) / max(1, len(counts)), 2),
        "most_in_any_second": most_in_any_second(times),
        "counts": " ".join(map(str, counts)),
    }
    low = [count for count in counts if count < LEAST * per_second]
    high = [count for count in counts if count > per_second]
    faults = [f"a second has {count} requests, fewer than allowed" for count in low]
    faults += [f"a second has {count} requests, more than allowed" for count in high]
    faults += [f"an execution ended {e.status}: {e.error}" for e in ends if e.status != "COMPLETED"]
    return BenchReport(figures, tuple(faults))


def counted(times: Sequence[float], skipped: int, seconds: int) -> list[int]:
    """Return the requests in each second after the `skipped` first ones."""
    if not times:
        return []
    begins = [times[0] + skipped + second for second in range(seconds + 1)]
    places = [bisect_left(times, begin) for begin in begins]
    return [after - before for before, after in pairwise(places)]


def most_in_any_second(times: Sequence[float]) -> int:
    """Return the most requests in a second, wherever it begins."""
    return max((bisect_left(times, at + 1.0) - place for place, at in enumerate(times)), default=0)


@asynccontextmanager
async def _counting_host() -> AsyncIterator[tuple[str, list[float]]]:
    """Run a host that notes when requests arrive."""
    times: list[float] = []

    async def ask(_: web.Request) -> web.Response:
        times.append(time.monotonic())
        return web.json_response({"ok": True})

    app = web.Application()
    app.router.add_get("/ask", ask)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}/ask", times
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)
