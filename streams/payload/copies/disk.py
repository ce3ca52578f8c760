"""The tiers `disk` and `pvc`: files in a folder of this machine, or of a mounted volume."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from uuid import uuid4

from streams.envelope.model import PayloadRef
from streams.payload.content import key_of
from streams.payload.copies.port import Copy, CopyFailed

ROOM_BYTES = 2**30
_SWEEP_EVERY = 64


class DiskTier:
    """One file a result, under its digest; the oldest make room when there are too many bytes.

    A file appears under its name whole, so that no reader finds half of one, and processes
    may share the folder. A volume's must be there already: one that is not mounted would
    fill the disk below it.
    """

    def __init__(
        self, folder: Path, room_bytes: int = ROOM_BYTES, *, is_volume: bool = False
    ) -> None:
        self._folder, self._room, self._is_volume = folder, room_bytes, is_volume
        self._written = 0

    async def put(self, copy: Copy) -> None:
        """Write a copy."""
        try:
            await asyncio.to_thread(self._write, self._path(copy.payload), copy.data)
        except OSError as error:
            raise CopyFailed(f"{self._folder}: {error}") from error

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the bytes, or None where there is no file."""
        try:
            return await asyncio.to_thread(self._path(ref).read_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CopyFailed(f"{self._folder}: {error}") from error

    async def delete(self, ref: PayloadRef) -> None:
        """Remove a file."""
        await asyncio.to_thread(self._path(ref).unlink, missing_ok=True)

    def _path(self, ref: PayloadRef) -> Path:
        return self._folder / key_of(ref)

    def _write(self, path: Path, data: bytes) -> None:
        if self._is_volume and not self._folder.is_dir():
            raise CopyFailed(f"{self._folder} is no folder; is the volume mounted there?")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{uuid4().hex}")
        try:
            part.write_bytes(data)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        self._written += 1
        if self._written % _SWEEP_EVERY == 1:
            self._sweep()

    def _sweep(self) -> None:
        """Remove the oldest files beyond the room there is."""
        files = sorted(self._files(), key=lambda one: one[0], reverse=True)
        used = 0
        for _, size, path in files:
            used += size
            if used > self._room:
                path.unlink(missing_ok=True)

    def _files(self) -> list[tuple[float, int, Path]]:
        found = []
        for place, _, names in os.walk(self._folder):
            for name in names:
                path = Path(place) / name
                try:
                    told = path.stat()
                except FileNotFoundError:
                    continue
                found.append((told.st_mtime, told.st_size, path))
        return found
