"""Memory of a stack's planner: now, and its peak."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from streams.dev.bench.resource_usage import memory_mb
from streams.dev.bench.service_kills import ServiceKills

EVERY_S = 1.0


@dataclass(slots=True)
class PlannerMemory:
    """Resident memory of one planner; pages that it shares with its children count once."""

    services: ServiceKills
    planner: str
    peak_mb: float = 0.0

    def now_mb(self) -> float:
        """Return the memory of the current process; 0 while there is none."""
        pid = self.services.service(self.planner).pid
        found = 0.0 if pid is None else memory_mb(pid)
        self.peak_mb = max(self.peak_mb, found)
        return found

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Look at it every second, for the peak."""

        async def watch() -> None:
            while True:
                self.now_mb()
                await asyncio.sleep(EVERY_S)

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
