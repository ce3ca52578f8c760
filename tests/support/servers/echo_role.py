"""A role for tests: writes what it reads from a topic to a file, one line a record.

Run as a program it is a process like those of `streams run`: arguments are the broker, the
topic and the data folder; NOETL_SHARD_ID is its name. A record `bug` is one it cannot handle;
`hang` is never finished.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from streams.kafka.feed.agent import Shell
from streams.kafka.feed.batch_consumer import KafkaFeed
from streams.kafka.feed.port import Record
from streams.kafka.feed.record_suspects import Batch
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

    async with KafkaFeed(BOOTSTRAP, [TOPIC], group=TOPIC, instance=shard) as feed:

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

        shell = Shell("echo", role_folder(settings, data))
        shell.attach(feed, handle, set_aside=set_aside)
        await shell.run(stop, ready)


if __name__ == "__main__":
    asyncio.run(run_role(run, load(env=os.environ).settings, Path(DATA), lambda: None))
