"""Calls of Kafka Connect by commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from streams.mirror.connect import ConnectClient
    from streams.settings import Settings

T = TypeVar("T")


def with_connect(
    settings: Settings, work: Callable[[ConnectClient], Coroutine[object, None, T]]
) -> T:
    """Run `work` with a client of Connect and return its result."""
    from streams.mirror.connect import ConnectClient

    async def run() -> T:
        async with ConnectClient(settings.connect.url) as connect:
            return await work(connect)

    return asyncio.run(run())
