"""Bytes in use in a folder that several processes fill: one number in a locked file.

The number is only what everybody agreed on last. Whoever doubts it (a process that starts, a
budget that seems used up) counts the folder again under the lock and writes what it found.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

PAGE = 4096
_NUMBER = struct.Struct("<q")
_PAUSE_S = 0.001
# No links: others may write to the folder, and a link of theirs could lead anywhere.
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class QuotaBusy(OSError):
    """Another process holds the ledger and does not let go: do without what it guards."""


@dataclass(slots=True)
class Account:
    """What is in use, while the lock is held; what it says at the end is written."""

    used: int


class DiskQuota:
    """Lets one process at a time change a folder whose size is bounded."""

    def __init__(self, path: Path, count: Callable[[], int], *, wait_s: float = 0.02) -> None:
        """`count` returns the bytes in use by looking; it is asked where the file says nothing."""
        self._path, self._count, self._wait_s = path, count, wait_s
        self._threads = Lock()

    @contextmanager
    def hold(self) -> Iterator[Account]:
        """Hold the lock, with the account as it stands.

        Raises:
            QuotaBusy: somebody else held it too long.
            OSError: there is no such file and it cannot be made.
        """
        if not self._threads.acquire(timeout=self._wait_s):
            raise QuotaBusy(f"{self._path} is locked by another thread")
        try:
            number = self._locked()
            try:
                text = os.pread(number, _NUMBER.size, 0)
                before = _NUMBER.unpack(text)[0] if len(text) == _NUMBER.size else -1
                account = Account(before if before >= 0 else self._count())
                try:
                    yield account
                finally:
                    if account.used != before:
                        os.pwrite(number, _NUMBER.pack(max(0, account.used)), 0)
            finally:
                os.close(number)
        finally:
            self._threads.release()

    def _locked(self) -> int:
        """Open and lock the file; one that was deleted meanwhile is made anew."""
        deadline = time.monotonic() + self._wait_s
        while True:
            number = os.open(self._path, _OPEN, 0o600)
            try:
                if os.fstat(number).st_uid != os.geteuid():
                    raise PermissionError(f"{self._path} is somebody else's")
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(number).st_nlink:
                    return number
            except BlockingIOError:
                pass
            except BaseException:
                os.close(number)
                raise
            os.close(number)
            if time.monotonic() >= deadline:
                raise QuotaBusy(f"{self._path} is locked by another process")
            time.sleep(_PAUSE_S)


def on_pages(size: int) -> int:
    """Return the memory that `size` bytes take: whole pages."""
    return -(-size // PAGE) * PAGE
