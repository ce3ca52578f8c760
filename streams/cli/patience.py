"""Retries of a command while a server is restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from streams.errors import Unavailable
from streams.retry import retry

T = TypeVar("T")
PATIENCE_S = 20.0
"""How long a command waits for a server: longer than the embedded ones take to restart."""


async def patiently(attempt: Callable[[], Awaitable[T]], patience_s: float = PATIENCE_S) -> T:
    """Return what `attempt` returns, retrying while a dependency is away; it must be repeatable.

    Raises:
        Unavailable: the dependency stayed away.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + patience_s
    reported: set[str] = set()

    def report(error: Unavailable, _: float) -> None:
        name = error.dependency
        if name not in reported:
            reported.add(name)
            click.echo(f"{name} does not answer; waiting up to {patience_s:.0f} s", err=True)

    return await retry(
        attempt,
        give_up=lambda _, pause_s: loop.time() + pause_s >= until,
        on_failure=report,
    )
