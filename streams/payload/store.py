"""Content-addressed payload store: packs objects and verifies what it reads."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import aclosing, suppress
from hashlib import sha256
from typing import Unpack

from cachetools import TTLCache

from streams.events.model import PayloadRef
from streams.payload.content import check, describe, key_of, name, scope_of, trash_key
from streams.payload.errors import PayloadBomb, PayloadCorrupt, PayloadMissing
from streams.payload.objects.blocks import (
    BLOCK_BYTES,
    BadBlock,
    Bomb,
    Cipher,
    NoCipher,
    Packer,
    Unpacker,
    most_stored,
    pack,
    unpack,
)
from streams.payload.objects.port import NoSuchObject, Objects, ObjectTooLarge
from streams.payload.port import Compression, PayloadDescription, Scope
from streams.payload.spool import in_blocks, in_packer_thread, spool_blocks, take_blocks
from streams.payload.store_counts import StoreCounts

PACKED_FROM_BYTES = 4096
"""Smaller payloads are not packed: that would save no disk block."""
KNOWN_S = 600.0
"""How long a store assumes that an object it put exists; the collector's grace is longer."""
_KNOWN = 10_000
_ASK_FROM_BYTES = 256 * 1024
_IN_A_THREAD_FROM_BYTES = 256 * 1024
_READ_AGAIN_S = 0.05


class ContentStore:
    """Stores payloads in an object store, one object per content and organization.

    A small payload is written without checking whether it exists: overwriting with the same
    content is harmless, and a check costs as much as a write. For a large one it checks first.
    Recently written objects are not written again.
    """

    def __init__(
        self,
        objects: Objects,
        *,
        compression: Compression = "none",
        cipher: Cipher | None = None,
        known_s: float = KNOWN_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._objects, self._compression = objects, compression
        self._cipher, self.counts = cipher or NoCipher(), StoreCounts()
        self._known: TTLCache[str, None] = TTLCache(_KNOWN, known_s, timer=monotonic)

    async def put(
        self, scope: Scope, data: bytes, **described: Unpack[PayloadDescription]
    ) -> PayloadRef:
        """Store `data` and return its reference once it is durable."""
        codec = self._codec(len(data), described.get("compression"))
        described["compression"] = codec
        large = len(data) >= _IN_A_THREAD_FROM_BYTES
        if large:
            ref = await asyncio.to_thread(describe, scope, data, **described)
        else:
            ref = describe(scope, data, **described)
        key = key_of(ref)
        if key in self._known:
            return ref
        if large:
            stored = await asyncio.to_thread(pack, scope, data, codec, self._cipher)
        else:
            stored = pack(scope, data, codec, self._cipher)
        if len(stored) < _ASK_FROM_BYTES or not await self._has(key, len(stored)):
            await self._objects.write(key, stored)
            self.counts.add(len(stored))
        self._known[key] = None
        return ref

    async def get(self, ref: PayloadRef) -> bytes:
        """Return the bytes behind `ref`, checked against its digest and length.

        On a mismatch it reads a second time: a server that writes in place may have returned an
        object that was just being overwritten with the same content.
        """
        try:
            return await self._get(ref)
        except PayloadCorrupt:
            await asyncio.sleep(_READ_AGAIN_S)
            return await self._get(ref)

    async def store(
        self,
        scope: Scope,
        chunks: AsyncIterable[bytes],
        **described: Unpack[PayloadDescription],
    ) -> PayloadRef:
        """Store the stream `chunks`, in constant memory.

        The name is known only after the last byte, so the bytes are spooled to a file.
        """
        blocks = in_blocks(chunks)
        first = await anext(blocks, b"")
        second = await anext(blocks, None)
        if second is None:
            return await self.put(scope, first, **described)
        codec = self._codec(BLOCK_BYTES, described.get("compression"))
        described["compression"] = codec
        with tempfile.TemporaryFile(prefix="streams-payload-") as spool:
            packer = Packer(scope, codec, self._cipher)
            digest, length = await spool_blocks(spool, blocks, (first, second), packer)
            ref = name(scope, digest, length, **described)
            key = key_of(ref)
            if key not in self._known:
                size = spool.seek(0, 2)
                if not await self._has(key, size):
                    spool.seek(0)
                    await self._objects.upload(key, spool)
                    self.counts.add(size)
                self._known[key] = None
        return ref

    async def fetch(self, ref: PayloadRef) -> AsyncIterator[bytes]:
        """Yield the bytes behind `ref` in pieces; the digest is verified at the end."""
        key = key_of(ref)
        unpacker = Unpacker(scope_of(ref), ref.byte_length, self._cipher)
        digest, length = sha256(), 0
        try:
            async with aclosing(self._pieces(key)) as pieces:
                async for piece in pieces:
                    blocks = unpacker.feed(piece)
                    while some := await in_packer_thread(take_blocks, blocks, digest):
                        for block in some:
                            length += len(block)
                            yield block
            for block in unpacker.finish():
                digest.update(block)
                length += len(block)
                yield block
        except NoSuchObject:
            raise PayloadMissing(ref.uri) from None
        except BadBlock as error:
            raise _corrupt(ref, error) from error
        if length != ref.byte_length:
            why = f"the stored payload has {length} bytes, not {ref.byte_length}"
            raise PayloadCorrupt(ref.uri, why)
        if (found := digest.hexdigest()) != ref.sha256:
            raise PayloadCorrupt(ref.uri, f"the stored payload has the digest {found}")

    async def exists(self, ref: PayloadRef) -> bool:
        """Return whether the object exists."""
        for place in _places(key_of(ref)):
            if await self._objects.stat(place) is not None:
                return True
        return False

    async def delete(self, ref: PayloadRef) -> None:
        """Remove the object, if it exists."""
        key = key_of(ref)
        self._known.pop(key, None)
        await self._objects.remove(key)
        await self._objects.remove(trash_key(key))

    async def _get(self, ref: PayloadRef) -> bytes:
        key = key_of(ref)
        try:
            stored = await self._read(key, most_stored(ref.byte_length))
            if ref.byte_length >= _IN_A_THREAD_FROM_BYTES:
                return await asyncio.to_thread(self._opened, ref, stored)
            return self._opened(ref, stored)
        except NoSuchObject:
            raise PayloadMissing(ref.uri) from None
        except ObjectTooLarge as error:
            raise PayloadCorrupt(ref.uri, f"the stored object is too long: {error}") from error

    def _opened(self, ref: PayloadRef, stored: bytes) -> bytes:
        try:
            return check(ref, unpack(scope_of(ref), stored, ref.byte_length, self._cipher))
        except BadBlock as error:
            raise _corrupt(ref, error) from error

    async def _read(self, key: str, at_most: int) -> bytes:
        for place in _places(key):
            with suppress(NoSuchObject):
                return await self._objects.read(place, at_most=at_most)
        raise NoSuchObject(key)

    async def _pieces(self, key: str) -> AsyncGenerator[bytes, None]:
        begun = False
        for place in _places(key):
            try:
                async with aclosing(self._objects.stream(place)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except NoSuchObject:
                if begun:
                    raise
        raise NoSuchObject(key)

    def _codec(self, byte_length: int, asked: Compression | None) -> Compression:
        codec = self._compression if asked is None else asked
        return codec if byte_length >= PACKED_FROM_BYTES else "none"

    async def _has(self, key: str, byte_length: int) -> bool:
        """Return whether an object of this length exists; another length may be incomplete."""
        found = await self._objects.stat(key)
        return found is not None and found.byte_length == byte_length


def _places(key: str) -> tuple[str, ...]:
    """Return the possible keys of an object: the collector may move it to or from the trash."""
    return key, trash_key(key), key


def _corrupt(ref: PayloadRef, error: BadBlock) -> PayloadCorrupt:
    kind = PayloadBomb if isinstance(error, Bomb) else PayloadCorrupt
    return kind(ref.uri, str(error))
