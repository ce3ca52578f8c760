"""A role's process: agents and timers that run until one fails or it is stopped.

Here without Faust, over feeds in memory, for tests and the simulator; agent.py adds Faust.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from streams.errors import Unavailable
from streams.holds import Holds
from streams.kafka.feed.consumption import Consumption, Handle, SetAside, WatchedFeed
from streams.kafka.feed.crash_journal import CrashJournal, JournalStorage
from streams.kafka.feed.record_suspects import Batch, RecordSuspects
from streams.kafka.feed.watchdog import LIMIT_S, Watchdog

_DRAIN_S = 10.0
Work = Callable[[], Coroutine[object, object, None]]
OpenStorage = Callable[[str], JournalStorage]
"""Opens the storage of a named journal."""


class RoleProcess:
    """Runs attached feeds and timers until stopped.

    Any exception of a handler, a feed or a timer ends `run`, except `Unavailable`: the batch
    is held and retried until the dependency is back.
    """

    def __init__(self, open_storage: OpenStorage, *, watches_loop: bool = True) -> None:
        self.open_storage, self._watches_loop = open_storage, watches_loop
        self.holds = Holds()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._agents: list[Agent] = []
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._work: list[Work] = []
        self._journals: list[CrashJournal] = []

    def journal(self, name: str) -> CrashJournal:
        """Open a crash journal of this process; `run` closes it."""
        journal = CrashJournal(self.open_storage(name))
        self._journals.append(journal)
        return journal

    def attach(
        self,
        feed: WatchedFeed,
        handle: Handle,
        *,
        set_aside: SetAside,
        name: str = "feed",
        stall_s: float = LIMIT_S,
    ) -> Watchdog:
        """Pass the feed's batches to `handle`, one at a time; return their watchdog.

        A handler that works for longer than `stall_s` without acknowledging must call the
        watchdog's `beat`.
        """
        watchdog = Watchdog(feed, self.holds, limit_s=stall_s, thread=self._watches_loop)
        suspects = RecordSuspects(self.journal(name))
        consumption = Consumption(
            feed, handle, set_aside, suspects, holds=self.holds, beat=watchdog.beat
        )
        agent = Agent(consumption)
        self._agents.append(agent)
        self._work.append(watchdog.watch)  # before a handler can block the loop
        self._start(agent, feed, consumption)
        return watchdog

    def add_work(self, work: Work) -> None:
        """Run `work` beside the feeds; its exceptions end the process."""
        self._work.append(work)

    def on_stop(self, close: Callable[[], Awaitable[None]]) -> None:
        """Call `close` when the agents have stopped, while acknowledgements still count.

        Not after a failure: the process must end soon, and nothing is committed.
        """
        self._closers.append(close)

    def fail(self, reason: BaseException) -> None:
        """End the process with this error."""
        if not self._failure.done():
            self._failure.set_exception(reason)
            self._failure.exception()  # a failure while it stops has no other reader

    def every(self, seconds: float, tick: Callable[[], Awaitable[None]]) -> None:
        """Call `tick` periodically, also after it raised `Unavailable`."""

        async def repeat() -> None:
            loop = asyncio.get_running_loop()
            with self.holds.waiter() as waiter:
                while True:
                    await asyncio.sleep(seconds)
                    asked_at = loop.time()
                    try:
                        await tick()
                    except Unavailable as error:
                        waiter.failed(error, asked_at)
                    else:
                        waiter.answered()

        self._work.append(repeat)

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Run until `stop`, then finish the current batches.

        Raises:
            Exception: the failure that ended the role.
        """
        running: list[asyncio.Task[None]] = []
        has_failed = True
        try:
            await self._open()
            running += [asyncio.create_task(self.guarded(work)()) for work in self._work]
            ready()
            await self._until(stop, running)
            for agent in self._agents:
                await agent.drain()
            has_failed = False
        finally:
            if not has_failed:
                for close in self._closers:
                    await close()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await self._close(has_failed=has_failed or self._failure.done())
            for journal in self._journals:
                journal.close(is_clean_exit=self._is_clean_exit)
        if self._failure.done():
            self._failure.result()

    def guarded(
        self, work: Callable[..., Awaitable[None]]
    ) -> Callable[..., Coroutine[object, object, None]]:
        """Wrap `work` so that its exceptions end the process."""

        async def guarded(*arguments: object) -> None:
            if self._failure.done():
                return
            try:
                await work(*arguments)
            except Exception as error:  # noqa: BLE001 - raised by `run`
                self.fail(error)

        return guarded

    async def _open(self) -> None:
        """Open what the agents need."""

    def _start(self, agent: Agent, feed: WatchedFeed, consumption: Consumption) -> None:
        """Schedule the consumption of a feed."""
        self._work.append(lambda: agent.consume(consumption.batches()))

    async def _close(self, *, has_failed: bool) -> None:
        """Close what subclasses opened."""

    @property
    def _is_clean_exit(self) -> bool:
        """Whether nothing handled can be the reason for the exit."""
        if not self._failure.done():
            return True
        return isinstance(self._failure.exception(), Unavailable)

    async def _until(self, stop: asyncio.Event, running: list[asyncio.Task[None]]) -> None:
        stopping = asyncio.create_task(stop.wait())
        ends: list[asyncio.Future[Any]] = [stopping, self._failure, *running]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        if self._failure.done():
            self._failure.result()
        if any(task.cancelled() for task in running):
            raise asyncio.CancelledError("a part of the process was cancelled")


class Agent:
    """Handles batches one at a time; the same over Faust's streams and in memory."""

    def __init__(self, consumption: Consumption) -> None:
        self._consumption = consumption
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_stopping = False

    async def consume(self, batches: AsyncIterable[Batch]) -> None:
        """Handle every batch, in order."""
        async for batch in batches:
            if self._is_stopping:
                return
            self._idle.clear()
            await self._consumption.take(batch)
            self._idle.set()

    async def drain(self) -> None:
        """Take no more batches and wait a bounded time for the current one."""
        self._is_stopping = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), _DRAIN_S)
