"""Monitoring of memory and CPU time by process, and of database connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import psutil

from streams.local.state import read_state

CONNECTIONS_EVERY_S, MEMORY_EVERY_S = 0.1, 1.0
# Client backends have a user and a database; backend_type is visible to privileged roles only.
CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datid IS NOT NULL AND usesysid IS NOT NULL
  AND pid <> pg_backend_pid() AND pid <> ALL ($1::integer[])"""


@dataclass(slots=True)
class ResourceUsage:
    """Current values and peaks."""

    folder: Path
    """The embedded stack's processes; without one only connections are counted."""
    others: dict[str, int] = field(default_factory=dict)
    """Other processes to monitor, by name."""
    peak_connections: int = 0
    peak_rss_mb: dict[str, float] = field(default_factory=dict)

    def look(self) -> None:
        """Sample the memory of every process."""
        for name, pid in self._processes().items():
            self.peak_rss_mb[name] = max(self.peak_rss_mb.get(name, 0.0), memory_mb(pid))

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU time of each service since its start."""
        return {name: cpu_s(pid) for name, pid in self._processes().items()}

    def _processes(self) -> dict[str, int]:
        state = read_state(self.folder)
        services = state.services if state is not None else ()
        return {
            service.name: service.pid for service in services if service.pid is not None
        } | self.others


@asynccontextmanager
async def measure_usage(
    dsn: str, folder: Path, *, not_counted: Iterable[int] = ()
) -> AsyncIterator[ResourceUsage]:
    """Monitor the processes of the stack in `folder` and the server of `dsn`.

    `not_counted` are the server's backends of the bench itself.
    """
    watch = ResourceUsage(folder)
    connection = await asyncpg.connect(dsn)
    watchers = [
        asyncio.create_task(_count(watch, connection, list(not_counted))),
        asyncio.create_task(_look(watch)),
    ]
    try:
        yield watch
    finally:
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
        await connection.close()


async def _count(watch: ResourceUsage, connection: asyncpg.Connection, ours: list[int]) -> None:
    while True:
        found = int(await connection.fetchval(CONNECTIONS, ours))
        watch.peak_connections = max(watch.peak_connections, found)
        await asyncio.sleep(CONNECTIONS_EVERY_S)


async def _look(watch: ResourceUsage) -> None:
    while True:
        await asyncio.to_thread(watch.look)
        await asyncio.sleep(MEMORY_EVERY_S)


def memory_mb(pid: int) -> float:
    """Return the memory of a process and its children; shared pages count once."""
    own, shared = 0, 0
    for process in _tree(pid):
        with suppress(psutil.Error):
            found = process.memory_info()
            common = getattr(found, "shared", 0)
            own, shared = own + found.rss - common, max(shared, common)
    return round((own + shared) / 2**20, 1)


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and its children, including ended ones."""
    total = 0.0
    for process in _tree(pid):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
            total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total


def _tree(pid: int) -> Iterable[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []
