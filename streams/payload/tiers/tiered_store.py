"""Payload store with caching tiers, read from the nearest to the durable one.

1    this process's memory
1.5  Arrow streams in the node's shared memory, found by the reference's hint
2    the node's disk
3    the store itself, written first, always

A tier that misses, or whose copy does not match the reference, is skipped and counted. Losing
1, 1.5 or 2 loses no data.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar, Unpack

from cachetools import FIFOCache

from streams.background import in_background
from streams.events.model import PayloadRef
from streams.payload.content import key_of
from streams.payload.errors import PayloadCorrupt
from streams.payload.port import ARROW, PayloadDescription, PayloadStore, Scope
from streams.payload.shm.node import SharedMemory
from streams.payload.shm.region import NotHere
from streams.payload.tiers.counts import Tier, TierCounts, TierSnapshot
from streams.payload.tiers.disk import DiskCache, PartialFile
from streams.payload.tiers.pieces import PIECE_BYTES, caching, cut, is_behind, own_copy
from streams.payload.tiers.process_cache import ByteLru

if TYPE_CHECKING:
    import pyarrow as pa

IN_A_THREAD_BYTES = 1 << 20
"""Larger copies are made in a thread, so that they do not block the event loop."""
TEND_S, SWEEP_EVERY = 5.0, 12
_MINE = 10_000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """The caching tiers of a process; each is optional."""

    memory: ByteLru | None = None
    shared: SharedMemory | None = None
    disk: DiskCache | None = None


class TieredPayloads:
    """A payload store with tiers in front of it."""

    def __init__(self, durable: PayloadStore, caches: Caches, counts: TierCounts) -> None:
        self._durable, self._counts = durable, counts
        self._memory, self._shared, self._disk = caches.memory, caches.shared, caches.disk
        # Recent own writes: own reads are counted separately.
        self._mine: FIFOCache[str, None] = FIFOCache(_MINE)

    async def put(
        self, scope: Scope, data: bytes, **described: Unpack[PayloadDescription]
    ) -> PayloadRef:
        """Store `data`; then share it if it is Arrow and there is room, with a hint."""
        ref = await self._durable.put(scope, data, **described)
        key = key_of(ref)
        self._mine[key] = None
        if self._shared is not None and ref.media_type == ARROW:
            hint = await _near(len(data), self._shared.offer, ref, data)
            if hint is not None:
                return replace(ref, ipc=hint)
        if self._memory is not None:
            self._memory.put(key, data)
        return ref

    async def get(self, ref: PayloadRef) -> bytes:
        """Return the bytes behind `ref` from the nearest tier that has them.

        Shared memory is copied, and the copy verified like those of the other tiers.
        """
        key = key_of(ref)
        found = self._in_memory(ref, key)
        if found is not None:
            try:
                data: bytes = await _near(len(found), own_copy, ref, found)
            except PayloadCorrupt:
                self._counts.fell_through["content"] += 1
            else:
                self._served(key, ref, found)
                return data
        return await self._from_disk_or_store(ref)

    async def table(self, ref: PayloadRef) -> pa.Table:
        """Return the rows behind `ref`; from shared memory they are not copied.

        Raises:
            PayloadCorrupt: it is not an Arrow stream.
        """
        from streams.payload.arrow.rows import read_table

        key = key_of(ref)
        found = self._in_memory(ref, key)
        if found is not None:
            try:
                # Compressed buffers would be copied; our writers do not compress.
                table = read_table(found, ref.uri, row_count=ref.row_count, unpacked_bytes=0)
            except PayloadCorrupt:
                self._counts.fell_through["arrow"] += 1
            else:
                self._served(key, ref, found)
                return table
        return read_table(await self._from_disk_or_store(ref), ref.uri)

    async def store(
        self,
        scope: Scope,
        chunks: AsyncIterable[bytes],
        **described: Unpack[PayloadDescription],
    ) -> PayloadRef:
        """Store the stream `chunks`; its first reader on a node caches it on disk."""
        return await self._durable.store(scope, chunks, **described)

    async def fetch(self, ref: PayloadRef) -> AsyncIterator[bytes]:
        """Yield the bytes behind `ref` in pieces, in constant memory, from the nearest tier.

        A payload read from the store to its end is cached on the node's disk.
        """
        key = key_of(ref)
        found = self._in_memory(ref, key)
        if found is not None:
            if isinstance(found, bytes) or await _near(len(found), is_behind, ref, found):
                self._served(key, ref, found)
                for piece in cut(found):
                    yield piece
                return
            self._counts.fell_through["content"] += 1
        own = key in self._mine
        if self._disk is not None:
            file = await asyncio.to_thread(self._disk.open, ref)
            if file is not None:
                with file:
                    while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
                        yield piece
                self._counts.read("2", ref.byte_length, own=own)
                return
        async with aclosing(caching(self._durable.fetch(ref), lambda: self._draft(ref))) as pieces:
            async for piece in pieces:
                yield piece
        self._counts.read("3", ref.byte_length, own=own)

    async def exists(self, ref: PayloadRef) -> bool:
        """Return whether the store has the object; copies do not count."""
        return await self._durable.exists(ref)

    async def delete(self, ref: PayloadRef) -> None:
        """Remove the object and this node's copies, if they exist."""
        key = key_of(ref)
        if self._memory is not None:
            self._memory.drop(key)
        if self._shared is not None:
            self._shared.drop(ref)
        if self._disk is not None:
            await asyncio.to_thread(self._disk.drop, ref)
        await self._durable.delete(ref)

    def snapshot(self) -> TierSnapshot:
        """Return the tiers' counters and sizes as JSON."""
        tiers = {"1": self._memory, "1.5": self._shared, "2": self._disk}
        in_use = {name: tier.bytes_in_use for name, tier in tiers.items() if tier is not None}
        return {**self._counts.snapshot(), "bytes_in_use": in_use}

    @asynccontextmanager
    async def tended(self) -> AsyncIterator[TieredPayloads]:
        """Remove expired regions while the body runs, and all own regions at its end."""
        try:
            async with in_background(self._tend()):
                yield self
        finally:
            if self._shared is not None:
                await asyncio.to_thread(self._shared.close)

    async def _tend(self) -> None:
        turn = 0
        while self._shared is not None:
            await asyncio.sleep(TEND_S)
            turn += 1
            sweep = turn % SWEEP_EVERY == 0
            await asyncio.to_thread(self._shared.sweep if sweep else self._shared.tend)

    def _in_memory(self, ref: PayloadRef, key: str) -> bytes | pa.Buffer | None:
        """Return the payload from memory or shared memory, if present."""
        if self._memory is not None and (data := self._memory.get(key)) is not None:
            if len(data) == ref.byte_length:
                return data
            self._counts.fell_through["length"] += 1
        if self._shared is None or ref.media_type != ARROW:
            return None
        try:
            return self._shared.attach(ref)
        except NotHere as error:
            self._counts.fell_through[error.reason] += 1
            return None

    def _served(self, key: str, ref: PayloadRef, found: bytes | pa.Buffer) -> None:
        """Count a hit that was verified."""
        tier: Tier = "1" if isinstance(found, bytes) else "1.5"
        self._counts.read(tier, ref.byte_length, own=key in self._mine)

    async def _from_disk_or_store(self, ref: PayloadRef) -> bytes:
        key = key_of(ref)
        own = key in self._mine
        data: bytes | None = None
        if self._disk is not None:
            data = await asyncio.to_thread(self._disk.get, ref)
        if data is not None:
            self._counts.read("2", len(data), own=own)
        else:
            data = await self._durable.get(ref)
            self._counts.read("3", len(data), own=own)
            if self._disk is not None:
                await asyncio.to_thread(self._disk.put, ref, data)
        if self._memory is not None:
            self._memory.put(key, data)
        return data

    def _draft(self, ref: PayloadRef) -> PartialFile | None:
        return None if self._disk is None else self._disk.draft(ref)


async def _near(size: int, call: Callable[..., _T], *args: object) -> _T:
    """Call directly for small sizes, in a thread for large ones."""
    return call(*args) if size < IN_A_THREAD_BYTES else await asyncio.to_thread(call, *args)
