"""Retries with back-off while a dependency is unavailable.

See docs/decisions/0029-hold.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from streams.clock import Clock
from streams.errors import Unavailable
from streams.holds import Holds, Waiter

T = TypeVar("T")
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
"""Work must continue within 5 s of a dependency's return."""
CALL_LIMIT_S = 20.0
"""Timeout of a call to a dependency: a paused server accepts requests and never responds."""

OnFailure = Callable[[Unavailable, float], None]
"""Called after each failed attempt, with the error and the pause before the next one."""
GiveUp = Callable[[Unavailable, float], bool]
"""Returns whether to raise the error instead of retrying."""


def _never(_: Unavailable, __: float) -> bool:
    return False


def _unreported(_: Unavailable, __: float) -> None:
    """Report nothing."""


async def retry(
    attempt: Callable[[], Awaitable[T]],
    *,
    give_up: GiveUp = _never,
    on_failure: OnFailure = _unreported,
    holds: Holds | None = None,
    longest_pause_s: float = LONGEST_PAUSE_S,
) -> T:
    """Return what `attempt` returns, retrying with back-off while it raises `Unavailable`.

    `holds` reports what is away.

    Raises:
        Unavailable: `give_up` accepted the error.
    """
    if holds is None:
        return await _retry(attempt, give_up, on_failure, None, longest_pause_s)
    with holds.waiter() as waiter:
        return await _retry(attempt, give_up, on_failure, waiter, longest_pause_s)


async def _retry(
    attempt: Callable[[], Awaitable[T]],
    give_up: GiveUp,
    on_failure: OnFailure,
    waiter: Waiter | None,
    longest_pause_s: float,
) -> T:
    pause_s = min(FIRST_PAUSE_S, longest_pause_s)
    loop = asyncio.get_running_loop()
    while True:
        asked_at = loop.time()
        try:
            result = await attempt()
        except Unavailable as error:
            if give_up(error, pause_s):
                raise
            on_failure(error, pause_s)
            if waiter is not None:
                waiter.failed(error, asked_at)
        else:
            if waiter is not None:
                waiter.answered()
            return result
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, longest_pause_s)


async def retry_until(
    attempt: Callable[[], Awaitable[T]],
    *,
    clock: Clock,
    deadline: float,
    longest_pause_s: float = LONGEST_PAUSE_S,
) -> T:
    """Return what `attempt` returns, retrying until the monotonic time `deadline`.

    Raises:
        Unavailable: the deadline would pass before the next attempt.
    """
    return await retry(
        attempt,
        give_up=lambda _, pause_s: clock.monotonic() + pause_s >= deadline,
        longest_pause_s=longest_pause_s,
    )
