"""Payloads as files below one folder, for a single machine or a shared volume."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.port import PIECE_BYTES, NoSuchObject, ObjectTooLarge, Stat

_LISTED_AT_ONCE = 1000


class LocalObjects:
    """Writes a temporary file, then renames it: readers see all of it or none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def write(self, key: str, data: bytes) -> None:
        """Store `data`; it is on disk on return."""
        await asyncio.to_thread(self._write, key, BytesIO(data))

    async def upload(self, key: str, source: BinaryIO) -> None:
        """Store the content of `source`."""
        await asyncio.to_thread(self._write, key, source)

    async def read(self, key: str, *, at_most: int) -> bytes:
        """Return the file's content."""
        return await asyncio.to_thread(self._read, key, at_most)

    async def stream(self, key: str) -> AsyncGenerator[bytes, None]:
        """Yield the file in pieces."""
        with _trouble(key):
            file = await asyncio.to_thread((self._folder / key).open, "rb")
            try:
                while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
                    yield piece
            finally:
                file.close()

    async def stat(self, key: str) -> Stat | None:
        """Return the file's length and modification time."""
        try:
            with _trouble(key):
                return await asyncio.to_thread(self._stat, key)
        except NoSuchObject:
            return None

    async def remove(self, key: str) -> None:
        """Remove the file."""
        with _trouble(key):
            await asyncio.to_thread((self._folder / key).unlink, missing_ok=True)

    async def list(self, prefix: str = "") -> AsyncIterator[Stat]:
        """Yield every file below `prefix`; those whose name begins with a dot are unfinished."""
        with _trouble(prefix):
            found = self._walk(prefix)
            while some := await asyncio.to_thread(list, islice(found, _LISTED_AT_ONCE)):
                for stat in some:
                    yield stat

    async def move(self, source: str, target: str) -> None:
        """Rename the file and set its modification time to now."""
        try:
            with _trouble(source):
                await asyncio.to_thread(self._move, self._folder / source, self._folder / target)
        except NoSuchObject:
            return

    def _write(self, key: str, source: BinaryIO) -> None:
        path = self._folder / key
        with _trouble(key):
            _make_folder(path.parent)
            unfinished = path.with_name(f".{path.name}.{uuid4().hex}")
            try:
                with unfinished.open("xb") as file:
                    shutil.copyfileobj(source, file, PIECE_BYTES)
                    file.flush()
                    os.fsync(file.fileno())
                unfinished.replace(path)
                _sync_folder(path.parent)
            finally:
                unfinished.unlink(missing_ok=True)

    def _read(self, key: str, at_most: int) -> bytes:
        with _trouble(key), (self._folder / key).open("rb") as file:
            if (length := os.fstat(file.fileno()).st_size) > at_most:
                raise ObjectTooLarge(f"{length} bytes, {at_most} are allowed")
            return file.read(length)

    def _stat(self, key: str) -> Stat:
        found = (self._folder / key).stat()
        return Stat(key, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def _walk(self, prefix: str) -> Iterator[Stat]:
        for folder, _, names in os.walk(self._folder / prefix):
            for name in names:
                key = str(Path(folder, name).relative_to(self._folder))
                try:
                    yield self._stat(key)
                except FileNotFoundError:
                    continue

    def _move(self, source: Path, target: Path) -> None:
        os.utime(source)
        _make_folder(target.parent)
        source.replace(target)
        _sync_folder(target.parent)
        _sync_folder(source.parent)


def _make_folder(folder: Path) -> None:
    """Create a folder and its parents, each synced in its parent."""
    if not folder.exists():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Sync a folder, which makes a rename in it durable."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def _trouble(what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise NoSuchObject(what) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise NoSuchObject(what) from None  # and cannot exist
        raise PayloadUnavailable(
            f"{what}: {error.strerror or error}; is the folder mounted and writable?"
        ) from error
