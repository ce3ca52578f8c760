"""Waiting for what announces itself to nobody: files, tables and other processes."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable


async def until(
    holds: Callable[[], object], *, within_s: float = 30.0, every_s: float = 0.02
) -> None:
    """Ask until `holds`, or what it returns once awaited, is true.

    Raises:
        TimeoutError: it was not within the time given.
    """
    async with asyncio.timeout(within_s):
        while True:
            found = holds()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(every_s)
