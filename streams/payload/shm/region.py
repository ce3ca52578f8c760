"""One region: a file in the shared memory folder, written once and mapped by its readers.

Plain files there are what `shm_open` makes, so a worker in another language finds them by the
same names. Python's own `shared_memory` is not used: its tracker unlinks what others still read.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from streams.payload.shm.header import SIZE, BadHeader, Header, unpack

if TYPE_CHECKING:
    import pyarrow as pa

NAME = re.compile(r"/noetl-[A-Za-z0-9._-]{1,200}")
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class NotHere(Exception):
    """A region that cannot be used; `reason` is one word, to be counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def write(number: int, header: Header, data: bytes) -> None:
    """Fill a region: the payload first, then the header that says it is whole.

    Writing a file and not into a mapping: where memory is short this is an error, not a signal.
    """
    _write_at(number, data, SIZE)
    _write_at(number, header.pack(), 0)


def attach(folder: Path, name: str, wanted: Header) -> pa.Buffer:
    """Map a region and return its payload, without a copy; it stays mapped while it is used.

    Raises:
        NotHere: it is gone, not ours, not sealed, or not what is wanted.
    """
    if not NAME.fullmatch(name):
        raise NotHere("name")
    number = _open(f"{folder}{name}")
    try:
        return mapped(number, wanted)
    except OSError as error:
        raise NotHere("unreadable") from error
    finally:
        os.close(number)


def _open(path: str) -> int:
    try:
        return os.open(path, _READ)
    except FileNotFoundError:
        raise NotHere("gone") from None
    except OSError as error:
        raise NotHere("unreadable") from error


def mapped(number: int, wanted: Header) -> pa.Buffer:
    """Map what is open under `number`, if it is a region of ours with what is wanted."""
    import pyarrow as pa  # only those who read rows need it

    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise NotHere("foreign")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotHere("foreign")
    if found.st_size != SIZE + wanted.length:
        raise NotHere("length")
    # Private, though nobody writes: older kernels refuse to share sealed memory otherwise.
    pages = mmap.mmap(number, found.st_size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    try:
        header = unpack(pages[:SIZE])
    except BadHeader:
        raise NotHere("header") from None
    if header.length != wanted.length:
        raise NotHere("length")
    if header.sha256 != wanted.sha256:
        raise NotHere("digest")
    return pa.py_buffer(pages)[SIZE:]


def _write_at(number: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        count = os.pwrite(number, rest, offset)
        rest, offset = rest[count:], offset + count
