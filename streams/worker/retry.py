"""Asking again while a dependency is down, for as long as it makes sense."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from streams.clock import Clock
from streams.errors import Unavailable

T = TypeVar("T")

FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 5.0


async def patiently(call: Callable[[], Awaitable[T]], *, clock: Clock, until: float) -> T:
    """Return what `call` returns, asking again with back-off until the moment `until`.

    Raises:
        Unavailable: the moment has come, and the dependency is still down.
    """
    wait = FIRST_WAIT_S
    while True:
        try:
            return await call()
        except Unavailable:
            if clock.monotonic() + wait >= until:
                raise
        await asyncio.sleep(wait)
        wait = min(LONGEST_WAIT_S, wait * 2)
