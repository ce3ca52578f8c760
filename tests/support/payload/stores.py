"""Payload stores to hold to their promises."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from streams.events.model import PayloadRef
from streams.payload.content import key_of
from streams.payload.objects.blocks import BadBlock
from streams.payload.objects.port import Shelves
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


class Shifted:
    """A cipher that shows where it was asked, and undoes itself."""

    number = 7

    def seal(self, scope: Scope, index: int, block: bytes) -> bytes:
        return bytes([index]) + scope.tenant_id.encode() + block[::-1]

    def open(self, scope: Scope, index: int, block: bytes) -> bytes:
        start = bytes([index]) + scope.tenant_id.encode()
        if not block.startswith(start):
            raise BadBlock("sealed for another place")
        return block[len(start) :][::-1]


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def alike(piece: bytes, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield piece
