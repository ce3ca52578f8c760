"""Reads of large objects by range: no request stays open while the reader is busy.

Servers and clients abort requests that take minutes, which a slow reader would cause.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from tempfile import TemporaryFile
from typing import NamedTuple

from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.port import PIECE_BYTES, NoSuchObject, Objects

RANGE_BYTES = 8 << 20


class Range(NamedTuple):
    """Some bytes of an object, with its size and tag."""

    data: memoryview
    size: int
    tag: str | None


class Replaced(Exception):
    """The object has another tag now; handled within the store."""


Ask = Callable[[int, str | None], Awaitable[Range]]
"""Returns the range at an offset of the object with this tag."""


async def ranges(key: str, ask: Ask) -> AsyncIterator[memoryview]:
    """Yield the ranges of one object.

    Raises:
        NoSuchObject: it does not exist.
        PayloadUnavailable: it was replaced or removed meanwhile.
    """
    data, size, tag = await ask(0, None)
    start = len(data)
    yield data
    while start < size:
        del data  # free it before the next one is read
        try:
            data, *rest = await ask(start, tag)
        except (NoSuchObject, Replaced):
            data, rest = memoryview(b""), []
        if rest != [size, tag] or not data:
            raise PayloadUnavailable(f"{key}: it was replaced while it was read; read it again")
        start += len(data)
        yield data


async def pieces(key: str, ask: Ask) -> AsyncIterator[bytes]:
    """Yield one object in pieces; otherwise like `ranges`."""
    async for part in ranges(key, ask):
        for at in range(0, len(part), PIECE_BYTES):
            yield bytes(part[at : at + PIECE_BYTES])
        del part


async def carry(objects: Objects, source: str, target: str) -> None:
    """Read, write and remove: a server-side copy may retain the original's time."""
    with TemporaryFile(prefix="streams-payload-") as spool:
        try:
            async for piece in objects.stream(source):
                await asyncio.to_thread(spool.write, piece)
        except NoSuchObject:
            return
        spool.seek(0)
        await objects.upload(target, spool)
    await objects.remove(source)
