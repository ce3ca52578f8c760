"""Database files of executions, so that tables pass from step to step on one host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from weakref import WeakValueDictionary

from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config

UNUSED_S = 7 * 24 * 3600.0
"""How long a file stays after its last change; nothing reports an execution's end here."""
_SUFFIX = ".duckdb"


class DuckdbFiles:
    """One file for each execution below `folder`; its users in this process take turns."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def place(self, config: Config, call: Call) -> AsyncIterator[str]:
        """Yield the task's `database`, or the file of its execution.

        Raises:
            BadConfig: there is no folder for files.
        """
        named = config.get("database")
        place = str(named) if named else await asyncio.to_thread(self._own, call)
        if place == ":memory:":
            yield place
            return
        async with self._turns.setdefault(place, asyncio.Lock()):
            yield place

    def _own(self, call: Call) -> str:
        if self._folder is None:
            raise BadConfig("this worker has no folder for files; set `database`")
        place = self._folder / f"{call.execution_id}{_SUFFIX}"
        if not place.exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            remove_unused(self._folder, time.time())
        return str(place)


def remove_unused(folder: Path, now: float) -> None:
    """Remove files of executions that have not changed for `UNUSED_S`."""
    for file in folder.glob(f"*{_SUFFIX}*"):
        with suppress(OSError):  # another worker of this host may remove it as well
            if now - file.stat().st_mtime > UNUSED_S:
                file.unlink()
