"""The tier `memory`: this process's latest results, up to a number of bytes."""

from __future__ import annotations

from cachetools import LRUCache

from streams.clock import Clock
from streams.events.model import PayloadRef
from streams.results.copies.ends import Ends, end_of, milliseconds
from streams.results.copies.port import Copy

ROOM_BYTES = 64 * 2**20


class Recent:
    """Bytes by URI; the least recently used entry is evicted first."""

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._cached: LRUCache[str, bytes] = LRUCache(room_bytes, getsizeof=len)

    def put(self, uri: str, data: bytes) -> None:
        """Store bytes, unless they are larger than the whole cache."""
        if len(data) <= self._cached.maxsize:
            self._cached[uri] = data

    def get(self, uri: str) -> bytes | None:
        """Return the bytes, or None."""
        return self._cached.get(uri)

    def drop(self, uri: str) -> None:
        """Remove the bytes, if present."""
        self._cached.pop(uri, None)


class MemoryTier:
    """Copies in this process; they end with it."""

    def __init__(self, clock: Clock, room_bytes: int = ROOM_BYTES) -> None:
        self._clock, self._recent, self._ends = clock, Recent(room_bytes), Ends()

    async def put(self, copy: Copy) -> None:
        """Store a copy."""
        until = end_of(copy.expires_at, self._clock.now())
        self._ends.note(copy.payload.uri, milliseconds(until))
        self._recent.put(copy.payload.uri, copy.data)

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the bytes, or None if there is no copy."""
        return self._recent.get(ref.uri)

    async def delete(self, ref: PayloadRef) -> None:
        """Delete a copy."""
        self._recent.drop(ref.uri)

    async def sweep(self) -> None:
        """Delete expired copies."""
        for uri in self._ends.take_due(milliseconds(self._clock.now())):
            self._recent.drop(uri)
