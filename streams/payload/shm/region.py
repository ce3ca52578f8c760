"""A region: a file in the shared memory folder, written once and mapped by its readers.

`shm_open` creates plain files there, so a worker in another language can open them by the same
names. Python's `shared_memory` is not used: its tracker unlinks regions that others still read.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from streams.payload.shm.header import SIZE, BadHeader, Header, unpack
from streams.payload.tiers.disk_quota import on_pages

if TYPE_CHECKING:
    import pyarrow as pa

NAME = re.compile(r"/noetl-[A-Za-z0-9._-]{1,200}")
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class NotHere(Exception):
    """A region cannot be used; `reason` is a counter key."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def write(number: int, header: Header, data: bytes) -> None:
    """Fill a region: the payload first, then the header that marks it complete.

    It writes to the file, not to a mapping: if memory is short this is an error, not a signal.
    """
    _write_at(number, data, SIZE)
    _write_at(number, header.pack(), 0)


def made(path: Path, size: int) -> int:
    """Create an empty region of its full size, so that recounts of the folder include it."""
    number = os.open(path, NEW, 0o600)
    try:
        os.ftruncate(number, size)
    except BaseException:
        os.close(number)
        path.unlink()
        raise
    return number


def fill(number: int, header: Header, data: bytes, until: float) -> None:
    """Fill a region, set its expiry time, and close it."""
    try:
        write(number, header, data)
        os.utime(number, (until, until))
    finally:
        os.close(number)


def renamed(passing: Path, path: Path) -> int:
    """Rename a region to its final name; return the memory of a region it replaced."""
    replaced = pages_of(path)
    passing.rename(path)
    return replaced


def pages_of(path: Path) -> int:
    """Return the memory of a file; 0 if it does not exist."""
    try:
        return on_pages(path.stat(follow_symlinks=False).st_size)
    except FileNotFoundError:
        return 0


def attach(folder: Path, name: str, wanted: Header) -> pa.Buffer:
    """Map a region and return its payload without copying; it stays mapped while in use.

    Raises:
        NotHere: it is gone, not ours, not sealed, or another payload.
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
    """Map the file descriptor `number`, if it is our region with the wanted payload.

    The mapping is not read before the region is known to be complete: if memory is short,
    reading a page that was never written kills the process.
    """
    import pyarrow as pa  # only needed to read rows

    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise NotHere("foreign")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotHere("foreign")
    if found.st_size != SIZE + wanted.length:
        raise NotHere("length")
    try:
        header = unpack(os.pread(number, SIZE, 0))
    except BadHeader:
        raise NotHere("header") from None
    if header.length != wanted.length:
        raise NotHere("length")
    if header.sha256 != wanted.sha256:
        raise NotHere("digest")
    if _has_holes(number, found):
        raise NotHere("holes")
    try:
        # MAP_PRIVATE although it is read-only: older kernels reject sealed memory otherwise.
        pages = mmap.mmap(number, found.st_size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    except ValueError:  # truncated meanwhile
        raise NotHere("length") from None
    return pa.py_buffer(pages)[SIZE:]


def _has_holes(number: int, found: os.stat_result) -> bool:
    """Return whether a part was never written; searched only if blocks are missing."""
    if found.st_blocks * 512 >= found.st_size:
        return False
    return os.lseek(number, 0, os.SEEK_HOLE) < found.st_size


def _write_at(number: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        count = os.pwrite(number, rest, offset)
        rest, offset = rest[count:], offset + count
