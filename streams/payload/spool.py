"""Payloads as blocks: cut, hashed and packed in threads, through a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from streams.payload.objects.blocks import BLOCK_BYTES, Packer

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

_PACKERS = ThreadPoolExecutor(2, thread_name_prefix="payload")
_T = TypeVar("_T")


async def spool_blocks(
    spool: BinaryIO, blocks: AsyncIterator[bytes], begun: tuple[bytes, ...], packer: Packer
) -> tuple[str, int]:
    """Hash and pack all blocks into the file; return digest and length of the payload."""
    digest, length = sha256(), 0

    def take(block: bytes) -> None:
        digest.update(block)
        spool.write(packer.pack(block))

    for block in begun:
        await in_packer_thread(take, block)
        length += len(block)
    async for block in blocks:
        await in_packer_thread(take, block)
        length += len(block)
    return digest.hexdigest(), length


def take_blocks(blocks: Iterator[bytes], digest: Hash) -> list[bytes]:
    """Return at most a block's worth: one small piece may hold thousands of blocks."""
    some, length = [], 0
    for block in blocks:
        digest.update(block)
        some.append(block)
        length += len(block)
        if length >= BLOCK_BYTES:
            break
    return some


async def in_packer_thread(call: Callable[..., _T], *arguments: object) -> _T:
    """Hash and pack in a separate thread pool: threads retain memory they once used."""
    return await asyncio.get_running_loop().run_in_executor(_PACKERS, call, *arguments)


async def in_blocks(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the bytes of `chunks` in blocks of one size; the last may be shorter."""
    waiting = bytearray()
    async for chunk in chunks:
        for at in range(0, len(chunk), BLOCK_BYTES):
            waiting += chunk[at : at + BLOCK_BYTES]
            if len(waiting) >= BLOCK_BYTES:
                yield bytes(memoryview(waiting)[:BLOCK_BYTES])
                del waiting[:BLOCK_BYTES]
    if waiting:
        yield bytes(waiting)
