"""Pause and resumption of a connector."""

from __future__ import annotations

import asyncio
import time

from streams.mirror.connect import ConnectClient
from streams.mirror.connect_errors import ConnectorFailed
from streams.mirror.connector_status import ConnectorStatus

_PAUSE_S = 0.1


async def pause(connect: ConnectClient, name: str, *, timeout_s: float = 60.0) -> ConnectorStatus:
    """Pause a connector; return when its tasks are paused.

    Raises:
        ConnectorFailed: they were not in time.
    """
    await connect.pause(name)
    deadline = time.monotonic() + timeout_s
    while not (status := await connect.status(name)).paused:
        if time.monotonic() > deadline:
            raise ConnectorFailed(
                f"connector {name} is not paused after {timeout_s:.0f} s ({status}); "
                "Connect's own log may say why"
            )
        await asyncio.sleep(_PAUSE_S)
    return status


async def resume(connect: ConnectClient, name: str) -> ConnectorStatus:
    """Resume a connector; return when it runs.

    Raises:
        ConnectorFailed: it failed, or did not run in time.
    """
    await connect.resume(name)
    return await connect.wait_until_running(name)
