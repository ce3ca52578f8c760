"""Copies of payloads for readers: verified, split, and cached while streaming."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

from streams.events.model import PayloadRef
from streams.payload.content import check
from streams.payload.tiers.disk import PartialFile

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_BYTES = 1 << 20


def own_copy(ref: PayloadRef, found: bytes | pa.Buffer) -> bytes:
    """Return a cached payload as bytes of this process; own bytes are already verified.

    Raises:
        PayloadCorrupt: shared memory does not match its header.
    """
    return found if isinstance(found, bytes) else check(ref, found.to_pybytes())


def is_behind(ref: PayloadRef, found: pa.Buffer) -> bool:
    """Return whether shared memory matches its header."""
    return sha256(found).hexdigest() == ref.sha256


def cut(found: bytes | pa.Buffer) -> Iterator[bytes]:
    """Yield it in pieces."""
    whole = memoryview(found)
    for start in range(0, len(whole), PIECE_BYTES):
        yield bytes(whole[start : start + PIECE_BYTES])


async def caching(
    pieces: AsyncIterator[bytes], begin: Callable[[], PartialFile | None]
) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of the store; at the verified end, complete the draft.

    It is created with the first piece: a missing payload must not evict anything.
    """
    draft, begun = None, False
    try:
        async for piece in pieces:
            if not begun:
                draft, begun = await asyncio.to_thread(begin), True
            if draft is not None:
                await asyncio.to_thread(draft.write, piece)
            yield piece
        if draft is not None:
            await asyncio.to_thread(draft.keep)
    finally:
        if draft is not None:
            await asyncio.to_thread(draft.drop)
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
