"""What a payload store needs from the place its objects lie in."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol

PIECE_BYTES = 1 << 20
"""How much of an object is in memory at a time while it streams."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What a place says about an object: as stored, so packed."""

    key: str
    byte_length: int
    modified_at: datetime


class NoSuchObject(Exception):
    """Nothing lies under the key; it does not leave the store."""


class ObjectTooLarge(Exception):
    """The object is longer than its reader allows; it does not leave the store."""


class Objects(Protocol):
    """Keeps bytes under keys. A write replaces the whole object: readers see all of it or none.

    Every method raises PayloadUnavailable where the place is down; asking again is safe.
    """

    async def write(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`; return once it is durable."""
        ...

    async def upload(self, key: str, source: BinaryIO) -> None:
        """Keep what `source` holds, from its start, in little memory."""
        ...

    async def read(self, key: str, *, at_most: int) -> bytes:
        """Return the object.

        Raises:
            NoSuchObject: there is none.
            ObjectTooLarge: it is longer than `at_most` bytes; it was not read.
        """
        ...

    def stream(self, key: str) -> AsyncGenerator[bytes, None]:
        """Yield the object in pieces.

        Raises:
            NoSuchObject: there is none.
        """
        ...

    async def stat(self, key: str) -> Stat | None:
        """Return what is known about an object, or None where there is none."""
        ...

    async def remove(self, key: str) -> None:
        """Remove the object; harmless when it is gone."""
        ...


class Shelves(Objects, Protocol):
    """A place that can be gone through, as the collector does."""

    def list(self, prefix: str = "") -> AsyncIterator[Stat]:
        """Yield every object whose key begins with `prefix`, which ends with `/` or is empty."""
        ...

    async def move(self, source: str, target: str) -> None:
        """Take an object from one key to the other, with a new `modified_at`.

        A crash in between leaves both. Harmless when `source` is gone.
        """
        ...
