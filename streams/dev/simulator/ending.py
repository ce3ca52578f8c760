"""Ways a simulated process ends: killed, stopped, or superseded while alive."""

from __future__ import annotations

import asyncio

from streams.dev.simulator.faults import Faults, Process, seen

_STOPS, _OUTLIVES = 0.2, 0.2
_GRACE_S, _LONGEST_ZOMBIE_S = 10.0, 40.0


async def end(process: Process, task: asyncio.Task[None], faults: Faults) -> None:
    """End a process; a worker may also stop in order, or run on while superseded."""
    if not task.done() and faults.is_on:
        if process.name == "worker":
            luck = faults.random.random()
            if luck < _STOPS:
                faults.counts["worker stopped"] += 1
                process.stop.set()
                await asyncio.wait({task}, timeout=_GRACE_S)
            elif luck < _STOPS + _OUTLIVES:
                faults.counts["worker outlived"] += 1
                process.is_fenced = True
                task.add_done_callback(seen)
                left_s = faults.random.uniform(0.0, _LONGEST_ZOMBIE_S)
                asyncio.get_running_loop().call_later(left_s, _kill, process, task)
                return
        if not task.done():
            faults.counts[f"{process.name} killed"] += 1
    _kill(process, task)
    await asyncio.gather(task, return_exceptions=True)


def _kill(process: Process, task: asyncio.Task[None]) -> None:
    process.is_alive = False
    task.cancel()
