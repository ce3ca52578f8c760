"""The baseline of the bench of projections: a plain Faust agent that projects event by event.

The fold, the rows and the statements are ours. It ends with `os._exit`: the threads of a stock
application may never stop.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from streams.app.log import open_pool
from streams.dev.bench.project_process import LIMIT_S, read_dsn
from streams.dev.bench.stock_faust import stock_application
from streams.dev.bench.table_options import (
    TableProcessOptions,
    options_given,
    report,
    report_ready,
)
from streams.events.model import Root
from streams.kafka.records import event_of_record
from streams.projector.core import ChangedRows, View, absorb
from streams.projector.postgres import PostgresProjections
from streams.projector.rows import Changes

REPORT_EVERY = 100


async def project(options: TableProcessOptions) -> None:
    """Fold each event and save its rows, one event at a time."""
    codec, dsn = read_dsn(options)
    app, is_done = stock_application(options), asyncio.Event()
    raw = app.topic(options.topic, key_type=bytes, value_type=bytes, value_serializer="raw")
    views: dict[Root, View] = {}
    async with open_pool(dsn, limit_s=LIMIT_S) as pool:
        store = PostgresProjections(pool)

        @app.agent(raw)
        async def fold(stream: Any) -> None:
            handled = 0
            async for one in stream.events():
                message = one.message
                headers = [(key, value) for key, value in message.headers or ()]
                at = int(message.timestamp * 1000 + 0.5)
                event = await event_of_record(message.value, headers, at, codec)
                view, touched = absorb(views.get(event.root, View()), event)
                views[event.root] = view
                changed, changes = ChangedRows(), Changes()
                changed.add(touched, event.seq)
                changes.add(changed.rows(view))
                await store.save(changes, ())
                handled += 1
                if handled % REPORT_EVERY == 0:
                    report({"handled": REPORT_EVERY})
                if handled == options.count:
                    report({"handled": handled % REPORT_EVERY})
                    is_done.set()

        await app.start()
        report_ready()
        await is_done.wait()
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(project(options_given()))
