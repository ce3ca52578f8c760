"""Disk space checks before and during writes."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streams.local.errors import DiskFull

_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_room(folder: Path, needed_bytes: int) -> None:
    """Check the free space.

    Raises:
        DiskFull: there is too little.
    """
    free = _free(folder)
    if free < needed_bytes:
        raise DiskFull(folder, free_bytes=free, needed_bytes=needed_bytes)


def is_full(error: BaseException) -> bool:
    """Return whether an error is a full disk or an exhausted quota."""
    return isinstance(error, OSError) and error.errno in _FULL


@contextmanager
def within(folder: Path, needed_bytes: int) -> Iterator[None]:
    """Translate errors of a disk that becomes full inside the block.

    Raises:
        DiskFull: a write failed for lack of space.
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
