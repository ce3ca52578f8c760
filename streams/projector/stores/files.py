"""Stores in files, which one process writes at a time: opened for each transaction."""

from __future__ import annotations

import asyncio
import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from streams.projector.stores.port import ProjectionStoreUnavailable

_T = TypeVar("_T")
WAIT_S = 10.0
"""How long to wait for another process to close the file."""
_PAUSE_S = 0.02


class StoreBusy(Exception):
    """Another process has the file open."""


@contextmanager
def writing_alone(path: Path) -> Iterator[None]:
    """Hold a lock file beside a path: of all stores, also those of this process.

    Raises:
        StoreBusy: another store has it.
    """
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreBusy("another store is writing") from error
        yield


class StoreFile:
    """A file or folder; the calls of this process come one after the other, in a thread."""

    def __init__(self, path: Path, wait_s: float = WAIT_S) -> None:
        self.path, self._wait_s = path, wait_s
        self._one_at_a_time = asyncio.Lock()

    async def run(self, action: Callable[[], _T]) -> _T:
        """Run what opens the file, uses it and closes it; again while it is busy.

        Raises:
            ProjectionStoreUnavailable: it is busy for too long, or cannot be used.
        """
        until = time.monotonic() + self._wait_s
        async with self._one_at_a_time:
            while True:
                try:
                    return await asyncio.to_thread(action)
                except StoreBusy as error:
                    if time.monotonic() >= until:
                        raise ProjectionStoreUnavailable(
                            f"{self.path} is in use: {error}; end the process that has it open"
                        ) from error
                    await asyncio.sleep(_PAUSE_S)
