"""The Faust shell: an application whose agents take batches from our own feeds.

Faust is the application with its agents and tasks; what it would do with Kafka itself is
off, and what it swallows ends the process instead. See docs/decisions/0012-shell.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import faust
from faust.app.base import BootStrategy

from streams.kafka.feed.crash_journal import JournalFile
from streams.kafka.feed.process import Attached, RoleProcess, Work


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


class Shell(RoleProcess):
    """One role's process, whose batches pass through Faust's channels to Faust's agents."""

    def __init__(self, role: str, folder: Path) -> None:
        super().__init__(lambda name: JournalFile(folder / f"{name}.journal"))
        self.app: faust.App = _App(
            f"noetl.{role}",
            # Never connected to: required by Faust, and its own transports are not started.
            broker="kafka://nowhere",
            datadir=folder / "faust",
            autodiscover=False,
            web_enabled=False,
            loop=asyncio.get_running_loop(),
        )

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Start Faust, then run until `stop`.

        Raises:
            Exception: whatever ended the role.
        """
        await self.app.start()
        # Faust holds its channels until a consumer of its own is assigned partitions.
        self.app.flow_control.resume()
        await super().run(stop, ready)

    def _start(self, name: str, attached: Attached) -> None:
        channel: Any = self.app.channel(maxsize=1)  # typed for events, and takes any value

        async def consume(stream: Any) -> None:
            # The stream itself would build a Kafka consumer, to acknowledge what is not Kafka's.
            async for batch in stream.channel:
                await attached.take(batch)

        self.app.agent(channel, name=f"{self.app.conf.id}.{name}")(self.guarded(consume))
        self._work.append(partial(attached.pump, channel.put))

    def _start_timer(self, repeat: Work) -> None:
        async def task(*_: object) -> None:
            await repeat()

        self.app.task(self.guarded(task))

    async def _stopped(self) -> None:
        await self.app.stop()
