"""Rate of durable 8 kB writes of a disk, measured in two ways."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from streams.dev.bench.report import per_second

BLOCK = b"\0" * 8192
REUSED_BLOCKS = 64


def fsync_rate(folder: Path, seconds: float = 1.0) -> float:
    """Overwrite a block of a preallocated file, then fdatasync, like a WAL segment."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        place = file.fileno()
        os.pwrite(place, BLOCK * REUSED_BLOCKS, 0)
        os.fsync(place)

        def once(number: int) -> None:
            os.pwrite(place, BLOCK, (number % REUSED_BLOCKS) * len(BLOCK))
            os.fdatasync(place)

        return _rate(once, seconds)


def append_fsync_rate(folder: Path, seconds: float = 1.0) -> float:
    """Append a block to a file, then fsync, which also makes its new size durable."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        place = file.fileno()

        def once(number: int) -> None:
            os.pwrite(place, BLOCK, number * len(BLOCK))
            os.fsync(place)

        return _rate(once, seconds)


def _rate(once: Callable[[int], None], seconds: float) -> float:
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        once(done)
        done += 1
    return per_second(done, time.perf_counter() - started)
