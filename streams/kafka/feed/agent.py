"""The Faust shell: an application whose agents take batches from our own feeds.

Faust stays the application, agents, tasks and timers; what it would do with Kafka
itself stays off, and what it swallows ends the process instead. See
docs/decisions/0012-shell.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import faust
from faust.app.base import BootStrategy

from streams.errors import Unavailable
from streams.kafka.feed.crash_journal import CrashJournal, JournalFile
from streams.kafka.feed.port import Feed, Record, Watched
from streams.kafka.feed.record_suspects import Batch, RecordSuspects, Step
from streams.kafka.feed.watchdog import LIMIT_S, Watchdog

_log = logging.getLogger(__name__)
_FIRST_HOLD_S, _LONGEST_HOLD_S = 0.2, 5.0
_DRAIN_S = 10.0
Handle = Callable[[Batch], Awaitable[None]]
"""Does what a batch asks for, and acknowledges its records itself, last."""
SetAside = Callable[[Record], Awaitable[None]]
"""Takes a record that ended the process too often; it is acknowledged afterwards."""


_Guarded = Callable[..., Coroutine[Any, Any, None]]


class Source(Feed, Watched, Protocol):
    """A feed that can be watched."""


class _Alone(BootStrategy):
    """Starts agents and tasks only: no consumer, producer, tables, sensors or web server."""

    enable_kafka = False
    enable_web = False
    enable_sensors = False


class _App(faust.App):
    BootStrategy = _Alone

    async def on_start(self) -> None:
        # Faust's own would build a Kafka consumer, with a thread, only to draw it in a graph.
        self.finalize()


class Shell:
    """One role's process: feeds and timers are attached, then it runs until told to stop.

    Any exception of an agent, a feed or a timer ends `run` with it. `Unavailable` alone does
    not: the batch is held and handled again until the dependency is back.
    """

    def __init__(self, role: str, folder: Path) -> None:
        self.app: faust.App = _App(
            f"noetl.{role}",
            # Never connected to: required by Faust, and its own transports are not started.
            broker="kafka://nowhere",
            datadir=folder / "faust",
            autodiscover=False,
            web_enabled=False,
            loop=asyncio.get_running_loop(),
        )
        self._folder = folder
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._attached: list[_Attached] = []
        self._journals: list[CrashJournal] = []

    def journal(self, name: str) -> CrashJournal:
        """Open a crash journal of this process; `run` closes it at its end."""
        journal = CrashJournal(JournalFile(self._folder / f"{name}.journal"))
        self._journals.append(journal)
        return journal

    def attach(
        self,
        feed: Source,
        handle: Handle,
        *,
        set_aside: SetAside,
        name: str = "feed",
        stall_s: float = LIMIT_S,
    ) -> Watchdog:
        """Hand the feed's batches to `handle`, one after the other; return their watchdog.

        A handler that is busy for longer than `stall_s` without acknowledging anything says
        so with the watchdog's `beat`.
        """
        watchdog = Watchdog(feed, limit_s=stall_s)
        suspects = RecordSuspects(self.journal(name))
        one = _Attached(self.app, feed, handle, set_aside, name, watchdog, suspects)
        self._attached.append(one)
        self.app.agent(one.channel, name=f"{self.app.conf.id}.{name}")(self._guarded(one.consume))
        return watchdog

    def every(self, seconds: float, tick: Callable[[], Awaitable[None]]) -> None:
        """Call `tick` again and again; while something is unavailable, it is only told."""

        async def repeat(*_: object) -> None:
            while True:
                await asyncio.sleep(seconds)
                try:
                    await tick()
                except Unavailable as error:
                    _log.warning("%s; trying again in %s s", error, seconds)

        self.app.task(self._guarded(repeat))

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Run until `stop`, then finish the batches that were taken and return.

        Raises:
            Exception: whatever ended the role.
        """
        await self.app.start()
        # Faust holds its channels until a consumer of its own is assigned partitions.
        self.app.flow_control.resume()
        guards = [
            asyncio.create_task(self._guarded(work)())
            for one in self._attached
            for work in (one.pump, one.watchdog.watch)
        ]
        try:
            ready()
            await self._until(stop)
            for one in self._attached:
                await one.drain()
        finally:
            for task in guards:
                task.cancel()
            await asyncio.gather(*guards, return_exceptions=True)
            await self.app.stop()
            for journal in self._journals:
                journal.close(is_blameless=self._is_blameless)
        if self._failure.done():
            self._failure.result()

    @property
    def _is_blameless(self) -> bool:
        """Whether no record can be why this life ends."""
        if not self._failure.done():
            return True
        return isinstance(self._failure.exception(), Unavailable)

    async def _until(self, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((stopping, self._failure), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if self._failure.done():
            self._failure.result()

    def _guarded(self, work: Callable[..., Awaitable[None]]) -> _Guarded:
        """Let what `work` raises end the shell; Faust would log it and go on."""

        async def guarded(*arguments: Any) -> None:
            if self._failure.done():
                return
            try:
                await work(*arguments)
            except Exception as error:  # noqa: BLE001 - passed on to whoever runs the shell
                if not self._failure.done():
                    self._failure.set_exception(error)

        return guarded


class _Attached:
    """One feed on its way through a Faust channel to its handler."""

    def __init__(
        self,
        app: faust.App,
        feed: Source,
        handle: Handle,
        set_aside: SetAside,
        name: str,
        watchdog: Watchdog,
        suspects: RecordSuspects,
    ) -> None:
        self.channel: Any = app.channel(maxsize=1)
        self.watchdog, self.suspects = watchdog, suspects
        self._feed, self._handle, self._set_aside, self._name = feed, handle, set_aside, name
        self._taken = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False

    async def pump(self) -> None:
        """Move batches from the feed to the channel, which holds one at a time."""
        while not self._stopping:
            if batch := await self._feed.next_batch():
                self._taken += 1
                self._idle.clear()
                await self.channel.put(batch)

    async def drain(self) -> None:
        """Take no more batches and wait for those that were taken, within reason."""
        self._stopping = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), _DRAIN_S)

    async def consume(self, stream: Any) -> None:
        """Be the agent: every batch to its handler, in order."""
        # The stream itself would build a Kafka consumer, to acknowledge what is not Kafka's.
        async for batch in stream.channel:
            for step in self.suspects.steps(batch):
                await self._take(step)
            self._taken -= 1
            if not self._taken:
                self._idle.set()

    async def _take(self, step: Step) -> None:
        hold_s = _FIRST_HOLD_S
        while True:
            self.suspects.begin(step.batch)
            try:
                if step.is_poison:
                    await self._put_aside(step.batch)
                else:
                    await self._handle(step.batch)
            except Unavailable as error:
                # No record's fault: held, and no death of this process counts against it.
                self.suspects.pause()
                self.watchdog.beat()
                _log.warning("%s: %s; holding, again in %.1f s", self._name, error, hold_s)
                await asyncio.sleep(hold_s)
                hold_s = min(hold_s * 2, _LONGEST_HOLD_S)
            else:
                self.suspects.end(step.batch)
                return

    async def _put_aside(self, batch: Batch) -> None:
        for record in next(iter(batch.values())):
            _log.error("%s ended this process too often and is set aside", record.address)
            await self._set_aside(record)
            self._feed.acknowledge([record])
