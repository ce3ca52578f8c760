"""The lock of a data folder: one supervisor at a time."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

import orjson
import psutil

from streams.data_folder import Layout
from streams.local.errors import StackAlreadyUp

_START_FIELD = 19
"""Of the fields behind the command in /proc/<pid>/stat: the start, in ticks since boot."""


def hold(layout: Layout) -> IO[bytes]:
    """Lock the data folder for this process; the kernel releases it when the process dies.

    Raises:
        StackAlreadyUp: another process holds it.
    """
    layout.create()
    lock = layout.lock.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise StackAlreadyUp(layout.data) from error
    me = psutil.Process()
    lock.truncate(0)
    lock.write(orjson.dumps({"pid": me.pid, "started_at": start_of(me)}))
    lock.flush()
    return lock


def still_held(layout: Layout, lock: IO[bytes]) -> bool:
    """Return whether the held lock is still the folder's; False if the folder was deleted."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(lock.fileno()), layout.lock.stat())
    return False


def holder(layout: Layout) -> psutil.Process | None:
    """Return the process that holds the data folder."""
    with suppress(OSError, ValueError, KeyError, psutil.Error):
        recorded = orjson.loads(layout.lock.read_bytes())
        found = psutil.Process(recorded["pid"])
        if is_same(found, recorded["started_at"]):
            return found
    return None


def is_same(process: psutil.Process, started_at: float) -> bool:
    """Return whether `process` is alive and not a later one with the same pid."""
    alive = process.status() != psutil.STATUS_ZOMBIE
    return alive and abs(start_of(process) - started_at) < 1.0


def start_of(process: psutil.Process) -> float:
    """Return when a process started, in seconds that no change of the wall clock moves.

    Where `/proc` has it that is the time since boot; psutil adds the boot time, which the
    kernel derives from the wall clock, so a laptop that slept would not know its own stack.
    """
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text("ascii", "replace")
    except OSError:
        return process.create_time()
    started_ticks = fields.rpartition(")")[2].split()[_START_FIELD]
    return int(started_ticks) / os.sysconf("SC_CLK_TCK")
