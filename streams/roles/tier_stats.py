"""Counters of a role's payload tiers, written to a file in its folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

import orjson

from streams.background import in_background
from streams.data_folder import TIERS_FILE
from streams.results.copies.port import Copies

WRITE_EVERY_S = 1.0


class Counters(Protocol):
    """A component that counts its operations."""

    def snapshot(self) -> Mapping[str, object]:
        """Return the counters as JSON."""
        ...


@asynccontextmanager
async def writing_tier_stats(
    counters: Counters, folder: Path, copies: Copies | None = None
) -> AsyncIterator[None]:
    """Write the counters once a second while the body runs, and at its end."""

    def current() -> dict[str, object]:
        counts = dict(counters.snapshot())
        return counts if copies is None else {**counts, "copies": copies.snapshot()}

    try:
        async with in_background(_write_changes(current, folder)):
            yield
    finally:
        await asyncio.to_thread(lambda: _write(folder, current()))


async def _write_changes(current: Callable[[], dict[str, object]], folder: Path) -> None:
    written: dict[str, object] = {}
    while True:
        # In a thread: it waits for file locks that other processes may hold.
        if (now := await asyncio.to_thread(current)) != written:
            await asyncio.to_thread(_write, folder, now)
            written = now
        await asyncio.sleep(WRITE_EVERY_S)


def _write(folder: Path, stats: dict[str, object]) -> None:
    """Write the file if possible: nothing depends on it."""
    with suppress(OSError):
        unfinished = folder / f".{TIERS_FILE}"
        unfinished.write_bytes(orjson.dumps(stats))
        unfinished.replace(folder / TIERS_FILE)
