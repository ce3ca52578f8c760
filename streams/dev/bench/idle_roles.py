"""Waits until the roles of a stack have handled all their records."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import aiohttp
import orjson

from streams.data_folder import layout_of
from streams.errors import Unavailable

WITHIN_S, POLL_S = 900.0, 0.5


class NotIdle(Unavailable):
    """Roles still have records to handle."""


async def until_idle(data: Path, roles: tuple[str, ...]) -> float:
    """Wait until no role of these names has a record to handle; return for how long.

    Raises:
        NotIdle: some still have, after a long time.
    """
    began = time.monotonic()
    async with aiohttp.ClientSession() as session:
        while True:
            behind = {role: await _behind(session, data, role) for role in roles}
            if not any(behind.values()):
                return time.monotonic() - began
            if time.monotonic() - began > WITHIN_S:
                raise NotIdle(f"records are still pending after {WITHIN_S:.0f} s: {behind}")
            await asyncio.sleep(POLL_S)


async def _behind(session: aiohttp.ClientSession, data: Path, role: str) -> int:
    """Return how many offsets a role is behind, from its page `/health`."""
    try:
        url = orjson.loads(layout_of(data).address(role).read_bytes())["url"]
        async with session.get(f"{url}/health") as response:
            return int((await response.json())["behind"])
    except (OSError, aiohttp.ClientError) as error:
        raise NotIdle(f"{role} does not answer: {error!r}; see its log") from error
