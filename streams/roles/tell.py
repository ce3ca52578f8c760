"""A role tells what its tiers did, in a file of its own folder that anybody may read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from streams.payload.tiers import TieredPayloads

TELL_S = 1.0
FILE = "tiers.json"


def tell_of(payloads: TieredPayloads, folder: Path) -> Callable[[], Awaitable[None]]:
    """Return what writes the counters down when they have changed, as well as it can."""
    told: dict[str, Any] = {}

    async def tell() -> None:
        nonlocal told
        if (said := payloads.snapshot()) != told:
            with suppress(OSError):
                unfinished = folder / f".{FILE}"
                unfinished.write_bytes(orjson.dumps(said))
                unfinished.replace(folder / FILE)
            told = said

    return tell
