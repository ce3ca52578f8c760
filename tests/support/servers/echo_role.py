"""A role for tests: writes what it reads from a topic to a file, one line a record.

Run as a program it is a process like those of `streams run`: arguments are the broker, the
topic and the data folder; NOETL_SHARD_ID is its name. A record `bug` is one it cannot handle;
`hang` is never finished.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from streams.kafka.feed.port import Record
from streams.kafka.feed.record_suspects import Batch
from streams.kafka.feed.topics import TopicFeed
from streams.kafka.transport.app import Membership, application
from streams.roles.application import open_process
from streams.roles.start import role_folder, run_role
from streams.settings import Settings, load

BOOTSTRAP, TOPIC, DATA = sys.argv[1:4] if len(sys.argv) > 3 else ("", "", "")


async def run(
    settings: Settings, data: Path, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Write each record's value behind this process's id."""
    shard = settings.runtime.shard_id

    def note(text: str) -> None:
        with (data / "seen").open("a") as seen:
            seen.write(f"{os.getpid()} {text}\n")

    membership = Membership(
        bootstrap=BOOTSTRAP,
        group=TOPIC,
        instance=shard,
        topics=(TOPIC,),
        folder=role_folder(settings, data),
    )
    process = open_process(application(membership), settings, data)
    feed = TopicFeed(process.app)

    async def handle(batch: Batch) -> None:
        for record in (record for records in batch.values() for record in records):
            text = (record.value or b"").decode()
            if text == "bug":
                raise ZeroDivisionError("a bug")
            note(text)
            if text != "hang":
                feed.acknowledge([record])

    async def set_aside(record: Record) -> None:
        note(f"aside {(record.value or b'').decode()}")

    process.attach(feed, handle, set_aside=set_aside)
    await process.run(stop, ready)


def fail(_: Exception) -> None:
    """End as `streams run` does."""
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    asyncio.run(run_role(run, load(env=os.environ).settings, Path(DATA), lambda: None, fail))
