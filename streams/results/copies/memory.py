"""The tier `memory`: the results this process made last, up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict

from streams.clock import Clock
from streams.events.model import PayloadRef
from streams.results.copies.ends import Ends, end_of, milliseconds
from streams.results.copies.port import Copy

ROOM_BYTES = 64 * 2**20


class Recent:
    """Bytes by name; what was used longest ago makes room."""

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._room, self._bytes = room_bytes, 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def put(self, uri: str, data: bytes) -> None:
        """Keep bytes that are not larger than all the room there is."""
        if len(data) > self._room:
            return
        self.drop(uri)
        self._kept[uri] = data
        self._bytes += len(data)
        while self._bytes > self._room:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= len(gone)

    def get(self, uri: str) -> bytes | None:
        """Return bytes that are still kept."""
        if (data := self._kept.get(uri)) is not None:
            self._kept.move_to_end(uri)
        return data

    def drop(self, uri: str) -> None:
        """Forget bytes, if they are kept."""
        if (gone := self._kept.pop(uri, None)) is not None:
            self._bytes -= len(gone)


class MemoryTier:
    """Copies in this process; they end with it."""

    def __init__(self, clock: Clock, room_bytes: int = ROOM_BYTES) -> None:
        self._clock, self._recent, self._ends = clock, Recent(room_bytes), Ends()

    async def put(self, copy: Copy) -> None:
        """Keep a copy."""
        until = end_of(copy.expires_at, self._clock.now())
        self._ends.note(copy.payload.uri, milliseconds(until))
        self._recent.put(copy.payload.uri, copy.data)

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the bytes, or None where there is no copy."""
        return self._recent.get(ref.uri)

    async def delete(self, ref: PayloadRef) -> None:
        """Forget a copy."""
        self._recent.drop(ref.uri)

    async def sweep(self) -> None:
        """Forget what has ended."""
        for uri in self._ends.take_due(milliseconds(self._clock.now())):
            self._recent.drop(uri)
