"""Where the object store's keys come from: the settings, or wherever boto3 finds them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.sigv4 import Keys

REFRESH_S = 60.0
NO_KEYS = (
    "no keys for the object store: set payload_store.connection.access_key and secret_key, or "
    "give this machine keys that boto3 finds"
)


def given(access_key: str, secret_key: str) -> Callable[[], Awaitable[Keys]]:
    """Use these keys always."""
    keys = Keys(access_key, secret_key)

    async def answer() -> Keys:
        return keys

    return answer


def found() -> Callable[[], Awaitable[Keys]]:
    """Ask boto3's chain (environment, profile, the machine's role), again every minute.

    boto3 renews keys that expire, with requests that block, hence the thread.
    """
    import boto3  # a quarter of a second that those who were given keys need not wait

    session = boto3.Session()
    last: tuple[float, Keys] | None = None

    def ask() -> Keys:
        credentials = session.get_credentials()
        if credentials is None:
            raise PayloadUnavailable(NO_KEYS)
        now = credentials.get_frozen_credentials()
        return Keys(now.access_key or "", now.secret_key or "", now.token)

    async def answer() -> Keys:
        nonlocal last
        if last is None or time.monotonic() - last[0] > REFRESH_S:
            last = (time.monotonic(), await asyncio.to_thread(ask))
        return last[1]

    return answer
