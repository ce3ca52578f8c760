"""A role tells what its tiers did, in a file of its own folder that anybody may read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from streams.payload.tiers import TieredPayloads

TELL_S = 1.0
FILE = "tiers.json"


@asynccontextmanager
async def telling(payloads: TieredPayloads, folder: Path) -> AsyncIterator[None]:
    """Write the counters down once a second for as long as the body runs, and at its end."""
    telling = asyncio.create_task(_tell_again_and_again(payloads, folder))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        _write(folder, payloads.snapshot())


async def _tell_again_and_again(payloads: TieredPayloads, folder: Path) -> None:
    told: dict[str, Any] = {}
    while True:
        if (said := payloads.snapshot()) != told:
            _write(folder, said)
            told = said
        await asyncio.sleep(TELL_S)


def _write(folder: Path, said: dict[str, Any]) -> None:
    """Write it as well as it can be: nobody's work depends on it."""
    with suppress(OSError):
        unfinished = folder / f".{FILE}"
        unfinished.write_bytes(orjson.dumps(said))
        unfinished.replace(folder / FILE)
