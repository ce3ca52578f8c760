"""Port of object stores."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol

PIECE_BYTES = 1 << 20
"""Bytes of an object in memory while it streams."""


@dataclass(frozen=True, slots=True)
class Stat:
    """Metadata of an object as stored, so with its compressed size."""

    key: str
    byte_length: int
    modified_at: datetime


class NoSuchObject(Exception):
    """The key does not exist; handled within the store."""


class ObjectTooLarge(Exception):
    """The object exceeds its reader's limit; handled within the store."""


class Objects(Protocol):
    """Stores bytes under keys. A write replaces the object atomically.

    Every method raises PayloadUnavailable if the store is down; retrying is safe.
    """

    async def write(self, key: str, data: bytes) -> None:
        """Store `data` under `key`; return once it is durable."""
        ...

    async def upload(self, key: str, source: BinaryIO) -> None:
        """Store the content of `source`, from its start, in constant memory."""
        ...

    async def read(self, key: str, *, at_most: int) -> bytes:
        """Return the object.

        Raises:
            NoSuchObject: it does not exist.
            ObjectTooLarge: it is longer than `at_most` bytes; it was not read.
        """
        ...

    def stream(self, key: str) -> AsyncGenerator[bytes, None]:
        """Yield the object in pieces.

        Raises:
            NoSuchObject: it does not exist.
        """
        ...

    async def stat(self, key: str) -> Stat | None:
        """Return an object's metadata, or None if it does not exist."""
        ...

    async def remove(self, key: str) -> None:
        """Remove the object, if it exists."""
        ...


class Shelves(Objects, Protocol):
    """An object store that can be listed, for the collector."""

    def list(self, prefix: str = "") -> AsyncIterator[Stat]:
        """Yield every object whose key begins with `prefix`, which ends with `/` or is empty."""
        ...

    async def move(self, source: str, target: str) -> None:
        """Move an object to another key, with a new `modified_at`.

        A crash in between leaves both. Does nothing if `source` does not exist.
        """
        ...
