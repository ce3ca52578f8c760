"""The time until another process has taken over the partitions of one that was killed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streams.dev.bench.table_child import Child, child
from streams.dev.bench.table_options import PARTITIONS, TableProcessOptions
from streams.dev.bench.table_topics import plain_producer

RECORD_EVERY_S = 0.05
SETTLED_S = 0.05


async def takeover_s(first: TableProcessOptions, second: TableProcessOptions) -> float:
    """Kill the first of two processes; return the time until the second wrote in its place."""
    async with child(first) as dying:
        await dying.until(lambda one: len(one.owned) == PARTITIONS, "the owner of all partitions")
        async with child(second) as heir, _records(first):
            await _shared(dying, heir, with_standby=bool(second.standbys))
            orphaned, heir.wrote = dying.owned, set()
            began = time.monotonic()
            await dying.kill()
            await heir.until(lambda one: bool(one.wrote & orphaned), "the writer of all partitions")
            return time.monotonic() - began


async def _shared(dying: Child, heir: Child, *, with_standby: bool) -> None:
    """Wait until both have partitions, and the standby of the heir has the rows of the other."""
    while True:
        await heir.until(
            lambda one: bool(one.owned) and (one.standbys_ready or not with_standby), "settled"
        )
        if dying.owned and len(dying.owned | heir.owned) == PARTITIONS:
            return
        await asyncio.sleep(SETTLED_S)


@asynccontextmanager
async def _records(options: TableProcessOptions) -> AsyncIterator[None]:
    """Write records to all partitions while the body runs."""

    async def write() -> None:
        async with plain_producer(options.bootstrap) as producer:
            while True:
                for number in range(PARTITIONS):
                    await producer.send_and_wait(options.topic, b"record", partition=number)
                await asyncio.sleep(RECORD_EVERY_S)

    writing = asyncio.create_task(write())
    try:
        yield
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
