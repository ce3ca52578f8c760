"""Restarts of a stack's planner: killed with kill -9, with its disk or without."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from streams.data_folder import layout_of
from streams.dev.bench.executions import Executions
from streams.dev.bench.resource_usage import cpu_s
from streams.dev.bench.service_kills import ServiceKills

STALLED_S, MOVED = 600.0, "wiped-"
_TAKEN = re.compile(rb"took over (\d+) open executions: (\d+) from the log")


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart of the planner."""

    ready_s: float
    """From kill -9 until the role is ready: partitions assigned, tables recovered."""
    handled_s: float
    """From kill -9 until an execution that was triggered at that moment has completed."""
    cpu_s: float
    """CPU time of the new process up to there, which other load changes less."""
    taken_over: int
    """Open executions that the planner has taken over."""
    from_log: int
    """Those among them that it had to read from the log."""


class PlannerRestarts:
    """Kills the planner of a stack, which its supervisor starts again."""

    def __init__(self, data: Path, planner: str, executions: Executions, path: str) -> None:
        self._layout, self._planner = layout_of(data), planner
        self._kills = ServiceKills(data)
        self._executions, self._path = executions, path

    async def restart(self, *, wipe: bool) -> Restart:
        """Kill the planner and wait until it works again; `wipe`: without its tables."""
        log = self._layout.log(self._planner)
        read_before = log.stat().st_size
        began = time.monotonic()
        killing = asyncio.create_task(
            self._kills.kill(self._planner, when_dead=self._move_tables if wipe else None)
        )
        await asyncio.sleep(0)  # it is killed before the trigger is published
        try:
            await self._executions.run(self._path, {}, stalled_s=STALLED_S)
            handled_s = time.monotonic() - began
            ready_s = await killing
            pid = self._kills.service(self._planner).pid
            used_s = 0.0 if pid is None else cpu_s(pid)
        finally:
            killing.cancel()
            for moved in self._layout.roles.glob(f"{MOVED}*"):
                await asyncio.to_thread(shutil.rmtree, moved)
        with log.open("rb") as lines:
            lines.seek(read_before)
            found = _TAKEN.findall(lines.read())
        taken_over, from_log = (sum(int(one[part]) for one in found) for part in (0, 1))
        return Restart(ready_s, handled_s, used_s, taken_over, from_log)

    def _move_tables(self) -> None:
        """Move the tables away; deleting them takes longer than the supervisor waits."""
        folder = self._layout.roles / self._planner / "faust"
        folder.rename(Path(mkdtemp(prefix=MOVED, dir=self._layout.roles)) / folder.name)
