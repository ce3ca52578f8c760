"""Readiness probes of services."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

import aiohttp

from streams.kafka.clients import admin


def http_answers(url: str, statuses: Collection[int] = (200,)) -> Callable[[], Awaitable[bool]]:
    """Return a probe that is true when `url` responds with one of `statuses`."""

    async def probe() -> bool:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status in statuses

    return probe


def kafka_answers(bootstrap: str) -> Callable[[], Awaitable[bool]]:
    """Return a probe that is true when a broker is registered and serves metadata."""
    host, _, port = bootstrap.partition(":")

    def list_brokers() -> bool:
        return len(admin(bootstrap).list_topics(timeout=3).brokers) > 0

    async def probe() -> bool:
        # Fails immediately on a closed port; the client below would wait and retry.
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
        return await asyncio.to_thread(list_brokers)

    return probe
