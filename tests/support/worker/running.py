"""Runs a worker in a process of its own kind, without Faust and files."""

from __future__ import annotations

import asyncio

from streams.kafka.feed.crash_journal import MemoryJournalStorage
from streams.kafka.feed.memory import MemoryFeed
from streams.kafka.feed.port import Record
from streams.kafka.feed.process import RoleProcess
from streams.log.worker_incarnations import MemoryIncarnations, begin
from streams.worker.loop import Worker
from streams.worker.process import attach_worker


async def run_worker(worker: Worker, feed: MemoryFeed, stop: asyncio.Event) -> None:
    """Work until `stop` is set, then finish or hand back what is under way."""
    incarnations, name = MemoryIncarnations(), "w/1"
    await begin(incarnations, name)

    async def set_aside(record: Record) -> None:
        raise AssertionError(f"{record.address} was set aside")

    process = RoleProcess(lambda _: MemoryJournalStorage(), watches_loop=False)
    attach_worker(process, feed, worker, incarnations=incarnations, name=name, set_aside=set_aside)
    try:
        await process.run(stop, lambda: None)
    finally:
        await worker.stop()
