"""The Faust shell: a Faust application whose agents consume our feeds.

Faust provides agents and tasks; its own Kafka clients are disabled, and exceptions it would
swallow end the process. See docs/decisions/0012-shell.md.
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


class _WithoutKafka(BootStrategy):
    """Starts agents and tasks only: no consumer, producer, tables, sensors or web server."""

    enable_kafka = False
    enable_web = False
    enable_sensors = False


class _App(faust.App):
    BootStrategy = _WithoutKafka

    async def on_start(self) -> None:
        # Faust's own would create a Kafka consumer only to draw it in a graph.
        self.finalize()


class Shell(RoleProcess):
    """One role's process; batches pass through Faust channels to Faust agents."""

    def __init__(self, role: str, folder: Path) -> None:
        super().__init__(lambda name: JournalFile(folder / f"{name}.journal"))
        self.app: faust.App = _App(
            f"noetl.{role}",
            # Required by Faust, but never connected to.
            broker="kafka://nowhere",
            datadir=folder / "faust",
            autodiscover=False,
            web_enabled=False,
            loop=asyncio.get_running_loop(),
        )

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Start Faust, then run until `stop`.

        Raises:
            Exception: the failure that ended the role.
        """
        await self.app.start()
        # Faust blocks its channels until its own consumer is assigned partitions.
        self.app.flow_control.resume()
        await super().run(stop, ready)

    def _start(self, name: str, attached: Attached) -> None:
        channel: Any = self.app.channel(maxsize=1)  # typed for events, and takes any value

        async def consume(stream: Any) -> None:
            # Iterating the stream itself would create a Kafka consumer for acknowledgements.
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
