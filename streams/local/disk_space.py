"""Room on the disk: looked for before anything is written, and missed with a clear word."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streams.local.errors import DiskFull

_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_room(folder: Path, needed_bytes: int) -> None:
    """Refuse to begin where too little is free.

    Raises:
        DiskFull: there is less room than needed.
    """
    free = _free(folder)
    if free < needed_bytes:
        raise DiskFull(folder, free_bytes=free, needed_bytes=needed_bytes)


def is_full(error: BaseException) -> bool:
    """Say whether an error is that of a full disk, or of a quota that is used up."""
    return isinstance(error, OSError) and error.errno in _FULL


@contextmanager
def within(folder: Path, needed_bytes: int) -> Iterator[None]:
    """Tell of a disk that becomes full meanwhile as of one that was too full to begin with.

    Raises:
        DiskFull: something could not be written for lack of room.
    """
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise DiskFull(folder, free_bytes=_free(folder), needed_bytes=needed_bytes) from error


def _free(folder: Path) -> int:
    """Return the free bytes of the disk that `folder` is on, or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
