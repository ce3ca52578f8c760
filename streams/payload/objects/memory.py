"""Payloads in memory, for tests and simulations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import UTC, datetime
from typing import BinaryIO

from streams.payload.objects.port import PIECE_BYTES, NoSuchObject, ObjectTooLarge, Stat
from streams.payload.port import Compression
from streams.payload.store import ContentStore


class MemoryObjects:
    """Stores objects in a dictionary, which a test may inspect and damage."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.objects: dict[str, bytes] = {}
        self._modified: dict[str, datetime] = {}
        self._now = now

    async def write(self, key: str, data: bytes) -> None:
        """Store `data`."""
        self.objects[key], self._modified[key] = bytes(data), self._now()

    async def upload(self, key: str, source: BinaryIO) -> None:
        """Store the content of `source`."""
        await self.write(key, source.read())

    async def read(self, key: str, *, at_most: int) -> bytes:
        """Return the object."""
        data = self._found(key)
        if len(data) > at_most:
            raise ObjectTooLarge(f"{len(data)} bytes, {at_most} are allowed")
        return data

    async def stream(self, key: str) -> AsyncGenerator[bytes, None]:
        """Yield the object in pieces."""
        data = self._found(key)
        for at in range(0, len(data), PIECE_BYTES):
            yield data[at : at + PIECE_BYTES]

    async def stat(self, key: str) -> Stat | None:
        """Return an object's metadata."""
        if key not in self.objects:
            return None
        modified_at = self._modified.get(key, datetime.min.replace(tzinfo=UTC))
        return Stat(key, len(self.objects[key]), modified_at)

    async def remove(self, key: str) -> None:
        """Remove the object."""
        self.objects.pop(key, None)

    async def list(self, prefix: str = "") -> AsyncIterator[Stat]:
        """Yield every object below `prefix`."""
        for key in sorted(self.objects):
            if key.startswith(prefix) and (stat := await self.stat(key)) is not None:
                yield stat

    async def move(self, source: str, target: str) -> None:
        """Move an object to another key."""
        if (data := self.objects.pop(source, None)) is not None:
            await self.write(target, data)

    def _found(self, key: str) -> bytes:
        data = self.objects.get(key)
        if data is None:
            raise NoSuchObject(key)
        return data


class MemoryPayloadStore(ContentStore):
    """A payload store in memory; `objects` are the stored bytes.

    It does not assume that stored objects still exist: tests remove them.
    """

    def __init__(self, *, compression: Compression = "none") -> None:
        self.shelves = MemoryObjects()
        super().__init__(self.shelves, compression=compression, known_s=0.0)

    @property
    def objects(self) -> dict[str, bytes]:
        """Stored objects by key."""
        return self.shelves.objects
