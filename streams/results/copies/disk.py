"""The tiers `disk` and `pvc`: files in a local folder, or on a mounted volume."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from streams.clock import Clock
from streams.events.model import PayloadRef
from streams.payload.content import key_of
from streams.results.copies.ends import end_of, milliseconds
from streams.results.copies.port import Copy, CopyFailed

_T = TypeVar("_T")
ROOM_BYTES = 2**30
_HEAD, _HEAD_BYTES = re.compile(rb"([0-9]{13})\n"), 14
_UNFINISHED_MS = 3_600_000
"""Age at which a temporary file is assumed to be that of a dead process."""


class DiskTier:
    """One file per result, by digest; those that expire first are evicted first.

    A file starts with its expiry time and is renamed into place, so that processes may share
    the folder. A volume's folder must exist: an unmounted one would fill the disk below it.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        room_bytes: int = ROOM_BYTES,
        *,
        is_volume: bool = False,
    ) -> None:
        self._folder, self._clock, self._is_volume = folder, clock, is_volume
        self._room, self._lock = room_bytes, threading.Lock()
        self._budget = 0
        """Bytes that may be written before the folder is scanned again."""

    async def put(self, copy: Copy) -> None:
        """Write a copy, unless it is larger than the whole tier."""
        if len(copy.data) + _HEAD_BYTES > self._room:
            return
        until = end_of(copy.expires_at, self._clock.now())
        await self._do(self._write, self._path(copy.payload), milliseconds(until), copy.data)

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the bytes, or None if there is no file."""
        return await self._do(_read, self._path(ref))

    async def delete(self, ref: PayloadRef) -> None:
        """Remove a file."""
        await self._do(_remove, self._path(ref))

    async def sweep(self) -> None:
        """Remove expired files."""
        await self._do(self._sweep)

    async def _do(self, call: Callable[..., _T], *args: object) -> _T:
        try:
            return await asyncio.to_thread(call, *args)
        except OSError as error:
            raise CopyFailed(f"{self._folder}: {error}") from error

    def _path(self, ref: PayloadRef) -> Path:
        return self._folder / key_of(ref)

    def _write(self, path: Path, until: int, data: bytes) -> None:
        if self._is_volume and not self._folder.is_dir():
            raise CopyFailed(f"{self._folder} is not a folder; is the volume mounted there?")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{uuid4().hex}")
        # Another result may have the same content and expire later.
        with suppress(FileNotFoundError):
            until = max(until, _until(path))
        try:
            part.write_bytes(b"%013d\n" % until + data)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        with self._lock:
            self._budget -= _HEAD_BYTES + len(data)
            if self._budget < 0:
                self._scan()

    def _sweep(self) -> None:
        with self._lock:
            self._scan()

    def _scan(self) -> None:
        """Remove expired files, and if over the limit, those that expire first.

        Other processes write too, so it is scanned again after an eighth of the limit.
        """
        now = milliseconds(self._clock.now())
        files, used = [], 0
        for until, size, path in self._files():
            if until <= now:
                _remove(path)
            else:
                files.append((until, size, path))
                used += size
        if used > self._room:
            for _, size, path in sorted(files):
                _remove(path)
                used -= size
                if used <= self._room * 7 // 8:
                    break
        self._budget = min(self._room - used, self._room // 8)

    def _files(self) -> Iterator[tuple[int, int, Path]]:
        for place, _, names in os.walk(self._folder):
            for name in names:
                path = Path(place) / name
                try:
                    status = path.stat()
                    unfinished = int(status.st_mtime * 1000) + _UNFINISHED_MS
                    until = unfinished if name.startswith(".") else _until(path)
                except FileNotFoundError:
                    continue
                yield until, status.st_size, path


def _read(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return data[_HEAD_BYTES:] if _HEAD.match(data) else None


def _until(path: Path) -> int:
    """Return when a file expires; 0 if it has no header."""
    with path.open("rb") as file:
        found = _HEAD.match(file.read(_HEAD_BYTES))
    return 0 if found is None else int(found[1])


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
