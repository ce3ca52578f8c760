"""The baseline of the bench of tables: plain Faust, with its defaults.

It ends with `os._exit`: the threads of a stock application may never stop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from time import process_time
from typing import Any

import faust

from streams.dev.bench.table_options import (
    PARTITIONS,
    TABLE,
    TableProcessOptions,
    options_given,
    report,
    report_ready,
)

TAKE, WITHIN_S = 500, 0.1


def stock_application(options: TableProcessOptions) -> faust.App:
    """Return an application with Faust's own transport, serializers and recovery."""
    return faust.App(
        options.group,
        broker=f"kafka://{options.bootstrap}",
        datadir=options.folder,
        store="rocksdb://",
        consumer_auto_offset_reset="earliest",
        topic_partitions=PARTITIONS,
        topic_replication_factor=1,
        topic_disable_leader=True,
        web_enabled=False,
        autodiscover=False,
        loop=asyncio.get_running_loop(),
    )


async def rebuild(options: TableProcessOptions) -> None:
    """Recover a table from its changelog, and count its rows."""
    app = stock_application(options)
    table = app.Table(TABLE, partitions=PARTITIONS)

    @app.agent(app.topic(options.topic, value_type=bytes))
    async def ignore(stream: Any) -> None:
        async for _ in stream:
            pass

    await app.start()
    report_ready()
    store: Any = table.data
    found = (key for one in list(store._dbs.values()) for key, _ in one.items())
    rows = sum(1 for key in found if key != store.offset_key)
    report({"figures": {"rows": rows}})


async def receive(options: TableProcessOptions) -> None:
    """Receive records one at a time, or in lists; measure the processor time after the first."""
    app, is_done = stock_application(options), asyncio.Event()
    raw = app.topic(options.topic, key_type=bytes, value_type=bytes, value_serializer="raw")

    @app.agent(raw)
    async def count(stream: Any) -> None:
        first = received = 0
        began = 0.0
        async for size in _sizes(stream, is_taking=options.mode == "take"):
            received += size
            if not first:
                first, began = received, process_time()
            elif received >= options.count and not is_done.is_set():
                used_us = 1e6 * (process_time() - began)
                report({"figures": {"us_per_event": used_us / (received - first)}})
                is_done.set()

    await app.start()
    report_ready()
    await is_done.wait()


async def _sizes(stream: Any, *, is_taking: bool) -> AsyncIterator[int]:
    if is_taking:
        async for records in stream.take(TAKE, within=WITHIN_S):
            yield len(records)
    else:
        async for _ in stream:
            yield 1


async def main(options: TableProcessOptions) -> None:
    """Run one mode: `rebuild`, `take` or `events`."""
    await (rebuild(options) if options.mode == "rebuild" else receive(options))
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(options_given()))
