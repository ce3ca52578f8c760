"""A reader of one topic: a role's process on our transport, also as a program that may fail.

The program writes the partition, offset and value of each record to `handled` in its folder,
and acknowledges last. Its options are one JSON object. A record `fail` is not acknowledged; it
starts the failure that the options name, and with `closing_s` it is acknowledged after that.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiokafka.errors import GroupAuthorizationFailedError

from streams.kafka.feed.agent import FaustProcess
from streams.kafka.feed.port import Record
from streams.kafka.feed.record_suspects import Batch
from streams.kafka.feed.topics import TopicFeed
from streams.kafka.transport.app import Membership, application
from streams.kafka.transport.consumer import ConsumerOptions

Failure = Callable[["TopicReader"], Awaitable[None]]


class TopicReader:
    """A member of the group that has the topic's name; `before` is awaited before each batch."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        folder: Path,
        *,
        instance: str = "one",
        max_span: int = 4000,
        max_records: int = 500,
        gather_s: float = 0.0,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        membership = Membership(
            bootstrap=bootstrap,
            group=topic,
            instance=instance,
            topics=(topic,),
            folder=folder,
            options=ConsumerOptions(max_span=max_span),
            max_records=max_records,
        )
        self.app = application(membership, loop=asyncio.get_running_loop())
        self.process = FaustProcess(self.app, folder)
        self.feed = TopicFeed(self.app, max_records=max_records, gather_s=gather_s)
        self.received: list[Record] = []
        self.quarantined: list[Record] = []
        self.before: Callable[[list[Record]], Awaitable[None]] = nothing
        self.acknowledges = True
        self.process.attach(self.feed, self.handle, set_aside=self.set_aside)

    async def handle(self, batch: Batch) -> None:
        records = [record for found in batch.values() for record in found]
        self.received += records
        await self.before(records)
        if self.acknowledges:
            self.feed.acknowledge(records)

    async def set_aside(self, record: Record) -> None:
        self.quarantined.append(record)

    @property
    def values(self) -> list[str]:
        return [(record.value or b"").decode() for record in self.received]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        """Run the process from its assignment to the end of the body; yield its task."""
        stop, ready = asyncio.Event(), asyncio.Event()
        run = asyncio.create_task(self.process.run(stop, ready.set))
        starting = asyncio.create_task(ready.wait())
        try:
            await asyncio.wait([run, starting], return_when=asyncio.FIRST_COMPLETED)
            yield run
        finally:
            starting.cancel()
            stop.set()
            await run


async def nothing(_: object) -> None:
    """Do nothing."""


# --- failures below the role


def in_driver(act: Callable[[Any], None]) -> Failure:
    """Return a failure that acts on the driver, in the driver's thread."""

    async def fail(reader: TopicReader) -> None:
        thread = reader.app.consumer._thread
        thread.thread_loop.call_soon_threadsafe(act, thread._consumer)

    return fail


def raise_bug(*_: object) -> Any:
    raise ZeroDivisionError("a bug")


def fetcher_raises(consumer: Any) -> None:
    consumer._fetcher._get_actions_per_node = raise_bug


def coordinator_raises(consumer: Any) -> None:
    consumer._coordinator.need_rejoin = raise_bug
    consumer._coordinator.request_rejoin()


def membership_is_refused(consumer: Any) -> None:
    async def refuse() -> bool:
        raise GroupAuthorizationFailedError

    consumer._coordinator._do_heartbeat = refuse


async def service_fails(reader: TopicReader) -> None:
    await reader.app.crash(ZeroDivisionError("a bug"))


FAILURES: dict[str, Failure] = {
    "a service of Faust fails": service_fails,
    "the fetcher raises": in_driver(fetcher_raises),
    "the fetcher ends": in_driver(lambda consumer: consumer._fetcher._fetch_task.cancel()),
    "the coordinator raises": in_driver(coordinator_raises),
    "the coordinator is cancelled": in_driver(
        lambda consumer: consumer._coordinator._coordination_task.cancel()
    ),
    "membership is refused": in_driver(membership_is_refused),
}


async def main(options: dict[str, Any]) -> None:
    folder, failure = Path(options["folder"]), options.get("failure", "")
    reader = TopicReader(
        options["bootstrap"],
        options["topic"],
        folder,
        max_span=options.get("max_span", 4000),
        max_records=options.get("max_records", 500),
    )
    reader.acknowledges = False
    failing = asyncio.Event()
    handled = (folder / "handled").open("a")

    async def before(records: list[Record]) -> None:
        for one in records:
            place = f"{one.topic_partition.partition} {one.offset}"
            handled.write(f"{place} {(one.value or b'').decode()}\n")
        handled.flush()
        await asyncio.sleep(options.get("pause_s", 0.0))
        reader.feed.acknowledge([one for one in records if one.value != b"fail"])
        if any(one.value == b"fail" for one in records):
            failing.set()
            if failure == "the handler raises":
                raise_bug()

    async def tick() -> None:
        if failure == "a timer raises" and failing.is_set():
            raise_bug()

    async def work() -> None:
        await failing.wait()
        if failure == "a background task raises":
            raise_bug()
        if failure in FAILURES:
            await FAILURES[failure](reader)
        await asyncio.Event().wait()

    async def close() -> None:
        if closing_s := options.get("closing_s"):
            reader.feed.acknowledge(reader.received)
            await asyncio.sleep(closing_s)

    reader.before = before
    reader.process.every(0.05, tick)
    reader.process.add_work(work)
    reader.process.on_stop(close)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    try:
        await reader.process.run(stop, (folder / "ready").touch)
    except Exception:  # noqa: BLE001 - ends as `streams run` does
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
