"""Consumption of a feed that is opened and closed while its process runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from streams.errors import Unavailable
from streams.kafka.feed.consumption import Consumption, Handle, SetAside, WatchedFeed
from streams.kafka.feed.crash_journal import CrashJournal
from streams.kafka.feed.process import Agent, RoleProcess
from streams.kafka.feed.record_suspects import RecordSuspects
from streams.kafka.feed.watchdog import LIMIT_S, Watchdog


class TemporaryConsumption:
    """One feed of a process, until it is closed; a feed for good is attached to the process."""

    def __init__(
        self, process: RoleProcess, feed: WatchedFeed, *, name: str, stall_s: float = LIMIT_S
    ) -> None:
        self._process, self._feed, self._name = process, feed, name
        # The process's own feeds watch its event loop.
        self._watchdog = Watchdog(feed, process.holds, limit_s=stall_s, thread=False)
        self.beat = self._watchdog.beat
        """Reports that no progress is expected."""

    async def run(self, handle: Handle, set_aside: SetAside, until: asyncio.Event) -> None:
        """Pass the feed's batches to `handle`, one at a time, until `until` is set.

        A batch that is cancelled is delivered again: nothing of it is acknowledged.

        Raises:
            Unavailable: the feed's broker refuses it; open it again.
            Exception: a handler failed; the process should end.
        """
        journal = CrashJournal(self._process.open_storage(self._name))
        consumption = Consumption(
            self._feed,
            handle,
            set_aside,
            RecordSuspects(journal),
            holds=self._process.holds,
            beat=self.beat,
        )
        is_clean_exit = False
        try:
            await _until_first(
                lambda: Agent(consumption).consume(consumption.batches()),
                self._watchdog.watch,
                until.wait,
            )
            is_clean_exit = True
        except (Unavailable, asyncio.CancelledError):
            is_clean_exit = True
            raise
        finally:
            journal.close(is_clean_exit=is_clean_exit)


async def _until_first(*works: Callable[[], Awaitable[object]]) -> None:
    """Run all until one ends; raise its exception."""
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
