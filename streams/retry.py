"""Retries with back-off while a dependency is unavailable.

See docs/decisions/0029-hold.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
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
    asked_at = asyncio.get_running_loop().time()
    try:
        return await attempt()
    except Unavailable as error:
        first = error
    return await retry_failed(
        attempt,
        first,
        asked_at,
        give_up=give_up,
        on_failure=on_failure,
        holds=holds,
        longest_pause_s=longest_pause_s,
    )


async def retry_failed(
    attempt: Callable[[], Awaitable[T]],
    error: Unavailable,
    asked_at: float,
    *,
    give_up: GiveUp = _never,
    on_failure: OnFailure = _unreported,
    holds: Holds | None = None,
    longest_pause_s: float = LONGEST_PAUSE_S,
) -> T:
    """Continue like `retry` after a call, made at the loop's time `asked_at`, raised `error`.

    For calls of every row, which usually succeed: they need nothing of this until one fails.

    Raises:
        Unavailable: `give_up` accepted the error.
    """
    with nullcontext() if holds is None else holds.waiter() as waiter:
        return await _retry(attempt, error, asked_at, give_up, on_failure, waiter, longest_pause_s)


async def _retry(
    attempt: Callable[[], Awaitable[T]],
    error: Unavailable,
    asked_at: float,
    give_up: GiveUp,
    on_failure: OnFailure,
    waiter: Waiter | None,
    longest_pause_s: float,
) -> T:
    pause_s, loop = min(FIRST_PAUSE_S, longest_pause_s), asyncio.get_running_loop()
    while True:
        if give_up(error, pause_s):
            raise error
        on_failure(error, pause_s)
        if waiter is not None:
            waiter.failed(error, asked_at)
        await asyncio.sleep(pause_s)
        pause_s, asked_at = min(pause_s * 2, longest_pause_s), loop.time()
        try:
            result = await attempt()
        except Unavailable as again:
            error = again
        else:
            if waiter is not None:
                waiter.answered()
            return result


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
