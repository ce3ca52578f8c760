"""Payload stores to hold to their promises."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from streams.envelope.model import PayloadRef
from streams.payload.content import key_of
from streams.payload.objects import Shelves
from streams.payload.port import Compression, PayloadStore, Scope

COMPRESSIONS: tuple[Compression, ...] = ("none", "zstd", "lz4", "gzip")

ACME = Scope("acme", "care")


@dataclass(frozen=True, slots=True)
class Subject:
    """A store that packs, and the place its objects lie in."""

    store: PayloadStore
    shelves: Shelves

    async def damage(self, ref: PayloadRef, data: bytes) -> None:
        await self.shelves.write(key_of(ref), data)


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]
