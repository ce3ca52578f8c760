"""A child process that stores and fetches payloads and reports its peak memory.

A separate process, because a process's peak never decreases.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from streams.payload.objects.open import open_payloads
from streams.payload.port import PayloadStore, Scope
from streams.settings import Settings

_PIECE = 1 << 18
SCOPE = Scope("bench", f"payload-{uuid4().hex}")


async def half_random(megabytes: int) -> AsyncIterator[bytes]:
    """Yield new, half-compressible bytes."""
    for _ in range(megabytes * (1 << 20) // _PIECE):
        yield os.urandom(_PIECE // 2) + bytes(_PIECE // 2)


async def alike(megabytes: int) -> AsyncIterator[bytes]:
    """Yield highly compressible bytes, so that a piece of the object expands to much data."""
    piece = os.urandom(32) * (_PIECE // 32)
    for _ in range(megabytes * (1 << 20) // _PIECE):
        yield piece


async def move(settings: Settings, megabytes: int) -> dict[str, float]:
    """Store and fetch payloads of this size, then remove them; the peak covers both."""
    async with open_payloads(settings) as store:
        put_s, get_s = await _moved(store, half_random(megabytes))
        await _moved(store, alike(megabytes))
    return {"put_s": put_s, "get_s": get_s, "peak_rss_mb": round(peak_bytes() / 2**20, 1)}


async def _moved(store: PayloadStore, pieces: AsyncIterator[bytes]) -> tuple[float, float]:
    began = time.perf_counter()
    ref = await store.store(SCOPE, pieces, media_type="application/octet-stream")
    stored = time.perf_counter()
    length = 0
    async for piece in store.fetch(ref):
        length += len(piece)
    fetched = time.perf_counter()
    await store.delete(ref)
    if length != ref.byte_length:
        raise ValueError(f"{length} of {ref.byte_length} bytes returned")
    return stored - began, fetched - stored


def peak_bytes() -> int:
    """Return the peak memory of this program; `getrusage` would include its parent's."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return 1024 * int(peak)


def main() -> None:
    """Read settings and size from standard input, print JSON."""
    asked: dict[str, Any] = orjson.loads(sys.stdin.buffer.read())
    settings = Settings.model_validate(asked["settings"])
    sys.stdout.write(orjson.dumps(asyncio.run(move(settings, asked["megabytes"]))).decode())


if __name__ == "__main__":
    main()
