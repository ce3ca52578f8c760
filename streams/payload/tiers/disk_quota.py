"""Bytes in use in a folder shared by several processes: one number in a locked file.

The number may be wrong after a crash. A process that starts, or finds the budget used up,
recounts the folder under the lock and writes the result.
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
# No symlinks: other users may write to the folder.
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class QuotaBusy(OSError):
    """Another process holds the ledger's lock for too long."""


@dataclass(slots=True)
class Account:
    """Bytes in use, while the lock is held; written back at the end."""

    used: int


class DiskQuota:
    """Serializes changes to a folder of bounded size."""

    def __init__(self, path: Path, count: Callable[[], int], *, wait_s: float = 0.02) -> None:
        """`count` scans for the bytes in use; it is called if the file is empty."""
        self._path, self._count, self._wait_s = path, count, wait_s
        self._threads = Lock()

    @contextmanager
    def hold(self) -> Iterator[Account]:
        """Hold the lock and yield the account.

        Raises:
            QuotaBusy: the lock was not released in time.
            OSError: the file does not exist and cannot be created.
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
        """Open and lock the file; one that was deleted meanwhile is recreated."""
        deadline = time.monotonic() + self._wait_s
        while True:
            number = os.open(self._path, _OPEN, 0o600)
            try:
                if os.fstat(number).st_uid != os.geteuid():
                    raise PermissionError(f"{self._path} belongs to another user")
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
