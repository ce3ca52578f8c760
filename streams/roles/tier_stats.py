"""A role tells what its tiers did, in a file of its own folder that anybody may read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import orjson

from streams.data_folder import TIERS_FILE
from streams.results.copies.port import Copies

TELL_S = 1.0


class Counting(Protocol):
    """What counts what it does."""

    def snapshot(self) -> dict[str, Any]:
        """Return the counters as JSON."""
        ...


@asynccontextmanager
async def telling(
    counting: Counting, folder: Path, copies: Copies | None = None
) -> AsyncIterator[None]:
    """Write the counters down once a second for as long as the body runs, and at its end."""

    def said() -> dict[str, Any]:
        return counting.snapshot() | ({} if copies is None else {"copies": copies.snapshot()})

    telling = asyncio.create_task(_tell_again_and_again(said, folder))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        await asyncio.to_thread(lambda: _write(folder, said()))


async def _tell_again_and_again(said: Callable[[], dict[str, Any]], folder: Path) -> None:
    told: dict[str, Any] = {}
    while True:
        # In a thread: it waits for ledgers that other processes may hold.
        if (now := await asyncio.to_thread(said)) != told:
            await asyncio.to_thread(_write, folder, now)
            told = now
        await asyncio.sleep(TELL_S)


def _write(folder: Path, said: dict[str, Any]) -> None:
    """Write it as well as it can be: nobody's work depends on it."""
    with suppress(OSError):
        unfinished = folder / f".{TIERS_FILE}"
        unfinished.write_bytes(orjson.dumps(said))
        unfinished.replace(folder / TIERS_FILE)
